// Security contexts of pods and containers.
#include <set>

#include "api/core/pod_checks.h"
#include "schema/check.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kIdRange = "must be between 0 and 2147483647, inclusive";

void check_id(const json::value& at, std::string_view field, const std::string& path,
              Rules& rules) {
  const auto id = json::get_int(at, {field});
  if (id && (*id < 0 || *id > INT32_MAX)) {
    rules.say(schema::invalid(child(path, field), *id, kIdRange));
  }
}

void check_profile(const json::value& context, const std::string& owner, Rules& rules) {
  const json::value* profile = present(context, {"seccompProfile"});
  if (profile == nullptr) return;
  const std::string path = child(owner, "seccompProfile");
  const std::string_view type = json::get_string(*profile, {"type"});
  if (rules.needs(*profile, path, "type", "type is required when seccompProfile is set")) {
    rules.one_of(child(path, "type"), type, {"Localhost", "RuntimeDefault", "Unconfined"});
  }
  const json::value* file = present(*profile, {"localhostProfile"});
  const std::string at = child(path, "localhostProfile");
  if (type == "Localhost" && file == nullptr) {
    rules.say(schema::required(at, "must be set when seccomp type is Localhost"));
  } else if (type == "Localhost") {
    check_inner_path(at, json::get_string(*file, {}), rules);
  } else if (file != nullptr) {
    rules.say(schema::invalid(at, *profile, "can only be set when seccomp type is Localhost"));
  }
}

void check_sysctls(const json::value& context, const std::string& path, Rules& rules) {
  constexpr std::size_t kMost = 253;
  static const std::string kPattern =
      R"(^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$)";
  std::set<std::string_view> seen;
  const json::array& list = json::get_array(context, {"sysctls"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view name = json::get_string(list[i], {"name"});
    if (!rules.needs(list[i], at, "name")) continue;
    if (name.size() > kMost || !schema::matches_pattern(kPattern, name)) {
      rules.say(schema::invalid(child(at, "name"), json::string(name),
                                "must have at most 253 characters and match regex " + kPattern));
    } else if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
  }
}

// A field of a Go type, as it is called in JSON and in Go, and the fields of its own type.
struct GoField {
  std::string_view json, go;
  std::vector<GoField> inner = {};
};

json::value shown_as_go(const json::value& value, const std::vector<GoField>& fields) {
  if (fields.empty() || !value.is_object()) return value;
  json::object out;
  for (const GoField& field : fields) {
    const json::value* found = present(value, {field.json});
    out[field.go] = found == nullptr ? json::value() : shown_as_go(*found, field.inner);
  }
  return out;
}

// A security context as the server prints its own type.
json::value shown_context(const json::value& context) {
  static const std::vector<GoField> kFields = {
      {"capabilities", "Capabilities", {{"add", "Add"}, {"drop", "Drop"}}},
      {"privileged", "Privileged"},
      {"seLinuxOptions",
       "SELinuxOptions",
       {{"user", "User"}, {"role", "Role"}, {"type", "Type"}, {"level", "Level"}}},
      {"windowsOptions",
       "WindowsOptions",
       {{"gmsaCredentialSpecName", "GMSACredentialSpecName"},
        {"gmsaCredentialSpec", "GMSACredentialSpec"},
        {"runAsUserName", "RunAsUserName"},
        {"hostProcess", "HostProcess"}}},
      {"runAsUser", "RunAsUser"},
      {"runAsGroup", "RunAsGroup"},
      {"runAsNonRoot", "RunAsNonRoot"},
      {"readOnlyRootFilesystem", "ReadOnlyRootFilesystem"},
      {"allowPrivilegeEscalation", "AllowPrivilegeEscalation"},
      {"procMount", "ProcMount"},
      {"seccompProfile",
       "SeccompProfile",
       {{"type", "Type"}, {"localhostProfile", "LocalhostProfile"}}},
      {"appArmorProfile",
       "AppArmorProfile",
       {{"type", "Type"}, {"localhostProfile", "LocalhostProfile"}}}};
  return shown_as_go(context, kFields);
}

}  // namespace

void check_security_context(const json::value& context, const std::string& path,
                            const PodFacts& facts, Rules& rules) {
  check_id(context, "runAsUser", path, rules);
  check_id(context, "runAsGroup", path, rules);
  rules.maybe_one_of(context, path, "procMount", {"Default", "Unmasked"});
  if (facts.host_users && json::get_string(context, {"procMount"}) == "Unmasked") {
    rules.say(schema::invalid(child(path, "procMount"), "Unmasked",
                              "`hostUsers` must be false to use `Unmasked`"));
  }
  check_profile(context, path, rules);
  if (json::get_bool(context, {"allowPrivilegeEscalation"}).value_or(true)) return;
  if (json::get_bool(context, {"privileged"}).value_or(false)) {
    rules.say(
        schema::invalid(path, shown_context(context),
                        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
  }
  for (const std::string& added :
       json::strings(json::get_array(context, {"capabilities", "add"}))) {
    if (added != "CAP_SYS_ADMIN") continue;
    rules.say(schema::invalid(path, shown_context(context),
                              "cannot set `allowPrivilegeEscalation` to false and "
                              "`capabilities.Add` CAP_SYS_ADMIN"));
  }
}

void check_pod_security(const json::value& spec, const std::string& path, Rules& rules) {
  const json::value* context = present(spec, {"securityContext"});
  if (context == nullptr) return;
  const std::string at = child(path, "securityContext");
  check_id(*context, "fsGroup", at, rules);
  check_id(*context, "runAsUser", at, rules);
  check_id(*context, "runAsGroup", at, rules);
  const json::array& groups = json::get_array(*context, {"supplementalGroups"});
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::int64_t id = json::get_int(groups[i], {}).value_or(0);
    if (id < 0 || id > INT32_MAX) {
      rules.say(schema::invalid(child(child(at, "supplementalGroups"), i), id, kIdRange));
    }
  }
  if (json::get_bool(spec, {"shareProcessNamespace"}).value_or(false) &&
      json::get_bool(spec, {"hostPID"}).value_or(false)) {
    rules.say(schema::invalid(child(at, "shareProcessNamespace"), true,
                              "ShareProcessNamespace and HostPID cannot both be enabled"));
  }
  check_sysctls(*context, child(at, "sysctls"), rules);
  rules.maybe_one_of(*context, at, "fsGroupChangePolicy", {"Always", "OnRootMismatch"});
  check_profile(*context, at, rules);
  rules.maybe_one_of(*context, at, "supplementalGroupsPolicy", {"Merge", "Strict"});
}

}  // namespace skiff::api
