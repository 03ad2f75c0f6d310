// What the restricted level asks for besides: the habits of a hardened pod.
#include <fmt/format.h>

#include <set>

#include "apiserver/admission/pod_security.h"
#include "base/strings.h"

namespace skiff::apiserver::pod_security {
namespace {

bool windows(const Pod& pod) { return json::get_string(pod.spec, {"os", "name"}) == "windows"; }

Finding escalation(const Pod& pod) {
  Names containers;
  for (const json::value* c : pod.containers) {
    if (json::get_bool(*c, {"securityContext", "allowPrivilegeEscalation"}).value_or(true)) {
      containers.push_back(name_of(c));
    }
  }
  if (containers.empty()) return {};
  return {"allowPrivilegeEscalation != false",
          fmt::format("{} must set securityContext.allowPrivilegeEscalation=false",
                      named("container", containers))};
}

Finding restricted_capabilities(const Pod& pod) {
  Names keeping, adding;
  std::set<std::string> added;
  for (const json::value* c : pod.containers) {
    bool dropped = false, forbidden = false;
    for (const std::string& one :
         json::strings(json::get_array(*c, {"securityContext", "capabilities", "drop"}))) {
      dropped = dropped || one == "ALL";
    }
    for (const std::string& one :
         json::strings(json::get_array(*c, {"securityContext", "capabilities", "add"}))) {
      if (one == "NET_BIND_SERVICE") continue;
      forbidden = true;
      added.insert(one);
    }
    if (!dropped) keeping.push_back(name_of(c));
    if (forbidden) adding.push_back(name_of(c));
  }
  std::vector<std::string> what;
  if (!keeping.empty()) {
    what.push_back(fmt::format("{} must set securityContext.capabilities.drop=[\"ALL\"]",
                               named("container", keeping)));
  }
  if (!adding.empty()) {
    what.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add",
                               named("container", adding), quoted(sorted(added))));
  }
  if (what.empty()) return {};
  return {"unrestricted capabilities", join(what, "; ")};
}

Finding volumes(const Pod& pod) {
  constexpr std::string_view kAllowed[] = {
      "configMap", "csi",   "downwardAPI",           "emptyDir",
      "ephemeral", "image", "persistentVolumeClaim", "projected",
      "secret"};
  constexpr std::string_view kOthers[] = {"hostPath",
                                          "gcePersistentDisk",
                                          "awsElasticBlockStore",
                                          "gitRepo",
                                          "nfs",
                                          "iscsi",
                                          "glusterfs",
                                          "rbd",
                                          "flexVolume",
                                          "cinder",
                                          "cephfs",
                                          "flocker",
                                          "fc",
                                          "azureFile",
                                          "vsphereVolume",
                                          "quobyte",
                                          "azureDisk",
                                          "photonPersistentDisk",
                                          "portworxVolume",
                                          "scaleIO",
                                          "storageos"};
  Names bad;
  std::set<std::string> types;
  for (const json::value& volume : json::get_array(pod.spec, {"volumes"})) {
    const auto has = [&](std::string_view type) {
      const json::value* source = json::find(volume, {type});
      return source != nullptr && !source->is_null();
    };
    bool allowed = false;
    for (std::string_view type : kAllowed) allowed = allowed || has(type);
    if (allowed) continue;
    bad.push_back(name_of(&volume));
    std::string_view found = "unknown";
    for (std::string_view type : kOthers) {
      if (found == "unknown" && has(type)) found = type;
    }
    types.emplace(found);
  }
  if (bad.empty()) return {};
  return {"restricted volume types",
          fmt::format("{} {} {} {}", named("volume", bad), plural("uses", "use", bad.size()),
                      plural("restricted volume type", "restricted volume types", types.size()),
                      quoted(sorted(types)))};
}

Finding non_root(const Pod& pod) {
  const auto whole = json::get_bool(pod.spec, {"securityContext", "runAsNonRoot"});
  Names refusing, silent;
  for (const json::value* c : pod.containers) {
    const auto own = json::get_bool(*c, {"securityContext", "runAsNonRoot"});
    if (own == false) refusing.push_back(name_of(c));
    if (!own && !whole.value_or(false)) silent.push_back(name_of(c));
  }
  if (whole == false || !refusing.empty()) {
    return {"runAsNonRoot != true",
            fmt::format("{} must not set securityContext.runAsNonRoot=false",
                        setters(whole == false, refusing))};
  }
  if (silent.empty()) return {};
  return {"runAsNonRoot != true",
          fmt::format("pod or {} must set securityContext.runAsNonRoot=true",
                      named("container", silent))};
}

Finding user(const Pod& pod) {
  const auto root = [](const json::value& owner) {
    return json::get_int(owner, {"securityContext", "runAsUser"}) == 0;
  };
  Names containers;
  for (const json::value* c : pod.containers) {
    if (root(*c)) containers.push_back(name_of(c));
  }
  const bool whole = root(pod.spec);
  if (!whole && containers.empty()) return {};
  return {"runAsUser=0", fmt::format("{} must not set runAsUser=0", setters(whole, containers))};
}

Finding restricted_seccomp(const Pod& pod) {
  enum class Profile { kNone, kGood, kBad };
  std::set<std::string> values;
  const auto look = [&](const json::value& owner) {
    const json::value* profile = json::find(owner, {"securityContext", "seccompProfile"});
    if (profile == nullptr || profile->is_null()) return Profile::kNone;
    const std::string_view type = json::get_string(*profile, {"type"});
    if (type == "RuntimeDefault" || type == "Localhost") return Profile::kGood;
    values.emplace(type);
    return Profile::kBad;
  };
  const Profile whole = look(pod.spec);
  Names bad, silent;
  for (const json::value* c : pod.containers) {
    const Profile own = look(*c);
    if (own == Profile::kBad) bad.push_back(name_of(c));
    if (own == Profile::kNone && whole != Profile::kGood) silent.push_back(name_of(c));
  }
  if (!values.empty()) {
    return {"seccompProfile",
            fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                        setters(whole == Profile::kBad, bad), quoted(sorted(values)))};
  }
  if (silent.empty()) return {};
  return {"seccompProfile", fmt::format("pod or {} must set securityContext.seccompProfile.type to "
                                        "\"RuntimeDefault\" or \"Localhost\"",
                                        named("container", silent))};
}

// From 1.25 on a pod that says it is for Windows is not asked for what only Linux has.
template <Finding (*kCheck)(const Pod&)>
Finding unless_windows(const Pod& pod) {
  return windows(pod) ? Finding() : kCheck(pod);
}

}  // namespace

const std::vector<Check>& restricted_checks() {
  static const std::vector<Check> kChecks{
      {"allowPrivilegeEscalation", {{8, escalation}, {25, unless_windows<escalation>}}},
      {"capabilities_restricted",
       {{22, restricted_capabilities}, {25, unless_windows<restricted_capabilities>}},
       "capabilities_baseline"},
      {"restrictedVolumes", {{0, volumes}}, "hostPathVolumes"},
      {"runAsNonRoot", {{0, non_root}}},
      {"runAsUser", {{23, user}}},
      {"seccompProfile_restricted",
       {{19, restricted_seccomp}, {25, unless_windows<restricted_seccomp>}},
       "seccompProfile_baseline"}};
  return kChecks;
}

}  // namespace skiff::apiserver::pod_security
