// What of a pod may change once it is there.
#include <fmt/format.h>

#include <algorithm>

#include "api/core/pod.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

// Gives `to` the member that `from` has, or takes it away.
void copy_pod_member(json::object& to, const json::value& from, std::string_view key) {
  const json::value* v = present(from, {key});
  if (v != nullptr) {
    to[key] = *v;
  } else {
    to.erase(key);
  }
}

void copy_images(json::object& to, const json::value& from, std::string_view list) {
  json::value* containers = to.if_contains(list);
  const json::array& old = json::get_array(from, {list});
  if (containers == nullptr || !containers->is_array()) return;
  json::array& now = containers->get_array();
  for (std::size_t i = 0; i < std::min(now.size(), old.size()); ++i) {
    if (json::object* c = now[i].if_object()) copy_pod_member(*c, old[i], "image");
  }
}

// True where nothing more can be compared.
bool check_container_counts(const json::value& spec, const json::value& old, Rules& rules) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::array& now = json::get_array(spec, {list});
    const std::string path = child("spec", list);
    if (now.size() != json::get_array(old, {list}).size()) {
      rules.say(schema::forbidden(path, "pod updates may not add or remove containers"));
      return true;
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::string at = child(path, i);
      const std::string_view image = json::get_string(now[i], {"image"});
      rules.needs(now[i], at, "image");
      if (trim(image).size() != image.size()) {
        rules.say(schema::invalid(child(at, "image"), json::string(image),
                                  "must not have leading or trailing whitespace"));
      }
    }
  }
  return false;
}

// True where nothing more needs to be compared.
bool check_deadline(const json::value& spec, const json::value& old, Rules& rules) {
  const std::string path = "spec.activeDeadlineSeconds";
  const auto now = json::get_int(spec, {"activeDeadlineSeconds"});
  const auto before = json::get_int(old, {"activeDeadlineSeconds"});
  if (!now) {
    if (before) {
      rules.say(
          schema::invalid(path, nullptr, "must not update from a positive integer to nil value"));
    }
    return false;
  }
  if (*now < 0 || *now > INT32_MAX) {
    rules.say(schema::invalid(path, *now, "must be between 0 and 2147483647, inclusive"));
    return true;
  }
  if (before && *before < *now) {
    rules.say(schema::invalid(path, *now, "must be less than or equal to previous value"));
    return true;
  }
  return false;
}

void check_added_tolerations(const json::value& spec, const json::value& old, Rules& rules) {
  const json::array& now = json::get_array(spec, {"tolerations"});
  const auto kept = [&](const json::value& before) {
    return std::ranges::any_of(now, [&](const json::value& t) {
      if (!t.is_object() || !before.is_object()) return false;
      json::object a = t.get_object(), b = before.get_object();
      a.erase("tolerationSeconds");
      b.erase("tolerationSeconds");
      return a == b;
    });
  };
  if (!std::ranges::all_of(json::get_array(old, {"tolerations"}), kept)) {
    rules.say(
        schema::forbidden("spec.tolerations",
                          "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
  rules.add(validate_tolerations(now, "spec.tolerations"));
}

void check_removed_gates(const json::value& spec, const json::value& old, Rules& rules) {
  const json::array& before = json::get_array(old, {"schedulingGates"});
  const json::array& now = json::get_array(spec, {"schedulingGates"});
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (std::ranges::count(before, now[i]) > 0) continue;
    rules.say(schema::forbidden(
        child(child("spec.schedulingGates", i), "name"),
        fmt::format("only deletion is allowed, but found new scheduling gate '{}'",
                    json::get_string(now[i], {"name"}))));
  }
}

}  // namespace

std::vector<Cause> validate_pod_update(const json::value& spec, const json::value& old) {
  Rules rules;
  if (!spec.is_object() || check_container_counts(spec, old, rules) ||
      check_deadline(spec, old, rules)) {
    return rules.take();
  }
  check_added_tolerations(spec, old, rules);
  check_removed_gates(spec, old, rules);
  // Whatever may change is made equal; any difference left is one that may not be.
  json::value rest = spec;
  json::object& o = rest.get_object();
  copy_images(o, old, "containers");
  copy_images(o, old, "initContainers");
  for (const std::string_view field : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    copy_pod_member(o, old, field);
  }
  if (json::get_int(old, {"terminationGracePeriodSeconds"}).value_or(0) < 0 &&
      json::get_int(spec, {"terminationGracePeriodSeconds"}) == 1) {
    copy_pod_member(o, old, "terminationGracePeriodSeconds");
  }
  if (!json::get_array(old, {"schedulingGates"}).empty()) {
    // A pod that waits at a gate may still be told where to run.
    copy_pod_member(o, old, "nodeSelector");
    copy_pod_member(o, old, "affinity");
  }
  if (rest == old) return rules.take();
  rules.say(schema::forbidden(
      "spec",
      "pod updates may not change fields other than `spec.containers[*].image`,"
      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
      "to 1 if it was previously negative)"));
  return rules.take();
}

}  // namespace skiff::api
