// PodSecurity: a namespace's labels say which pods it takes and which it warns about.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/meta.h"
#include "apiserver/admission/pod_security.h"
#include "apiserver/admission/rules.h"
#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kPodsToCheck = 3000;

const json::object& labels_of(const json::value& object) {
  return json::get_object(object, {"metadata", "labels"});
}

// A namespace's pods, the first of each controller before its others: they are alike.
std::vector<Object> by_worth(const std::vector<Object>& pods) {
  std::vector<Object> first, others;
  std::set<std::string> seen;
  for (const Object& pod : pods) {
    const json::object* owner = api::controller_of(*pod);
    const bool known =
        owner != nullptr && !seen.emplace(json::get_string(json::value(*owner), {"uid"})).second;
    (known ? others : first).push_back(pod);
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

void warn_of_pods(const AdmissionRequest& request, const pod_security::Policy& policy,
                  Warnings& warnings) {
  const std::string ns(api::name(request.object));
  std::vector<Object> pods = by_worth(request.txn.list("pods", ns));
  const std::size_t total = pods.size();
  if (total > kPodsToCheck) {
    pods.resize(kPodsToCheck);
    warnings.push_back(
        fmt::format("new PodSecurity enforce level only checked against the first {} of {} "
                    "existing pods",
                    kPodsToCheck, total));
  }
  struct Group {
    std::string first = {};
    std::size_t count = 0;
  };
  std::map<std::string, Group> groups;
  for (const Object& pod : pods) {
    const json::value* spec = json::find(*pod, {"spec"});
    const json::value* metadata = json::find(*pod, {"metadata"});
    if (spec == nullptr || metadata == nullptr) continue;
    const auto findings = pod_security::evaluate(policy, *metadata, *spec);
    if (findings.empty()) continue;
    Group& group = groups[pod_security::reasons(findings)];
    const std::string name(api::name(*pod));
    if (group.count++ == 0 || name < group.first) group.first = name;
  }
  if (groups.empty()) return;
  warnings.push_back(
      fmt::format("existing pods in namespace \"{}\" violate the new PodSecurity enforce level "
                  "\"{}\"",
                  ns, policy.text()));
  std::set<std::string> lines;
  for (const auto& [why, group] : groups) {
    const std::string more = group.count == 1 ? ""
                             : group.count == 2
                                 ? " (and 1 other pod)"
                                 : fmt::format(" (and {} other pods)", group.count - 1);
    lines.insert(fmt::format("{}{}: {}", group.first, more, why));
  }
  warnings.insert(warnings.end(), lines.begin(), lines.end());
}

Result<void> check_namespace_policies(const AdmissionRequest& request, Warnings& warnings) {
  std::vector<Cause> causes;
  const pod_security::Policies now = pod_security::read_policies(labels_of(request.object), causes);
  std::vector<Cause> old_causes;
  const pod_security::Policies before =
      request.creates() ? pod_security::Policies()
                        : pod_security::read_policies(labels_of(*request.old), old_causes);
  if (!causes.empty() && causes != old_causes) {
    return std::unexpected(
        invalid(request.request.kind->resource(), api::name(request.object), std::move(causes)));
  }
  if (request.creates()) return {};
  const bool relaxed =
      now.enforce.minor == before.enforce.minor && now.enforce.level <= before.enforce.level;
  if (now.enforce == before.enforce || now.enforce.level == pod_security::Level::kPrivileged ||
      relaxed) {
    return {};
  }
  warn_of_pods(request, now.enforce, warnings);
  return {};
}

bool images_changed(const json::value& pod, const json::value& old) {
  for (std::string_view field : {"containers", "initContainers"}) {
    const json::array& after = json::get_array(pod, {"spec", field});
    const json::array& before = json::get_array(old, {"spec", field});
    if (after.size() != before.size()) return true;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (json::get_string(after[i], {"image"}) != json::get_string(before[i], {"image"})) {
        return true;
      }
    }
  }
  const json::array& before = json::get_array(old, {"spec", "ephemeralContainers"});
  for (const json::value& c : json::get_array(pod, {"spec", "ephemeralContainers"})) {
    const bool same = std::ranges::any_of(before, [&](const json::value& b) {
      return json::get_string(b, {"name"}) == json::get_string(c, {"name"}) &&
             json::get_string(b, {"image"}) == json::get_string(c, {"image"});
    });
    if (!same) return true;
  }
  return false;
}

// The pod or the template in what makes pods; null where there is none.
const json::value* template_of(const AdmissionRequest& request) {
  const json::value& object = request.object;
  if (request.is("podtemplates")) return json::find(object, {"template"});
  if (request.is("cronjobs.batch")) {
    return json::find(object, {"spec", "jobTemplate", "spec", "template"});
  }
  for (std::string_view key : {"replicationcontrollers", "replicasets.apps", "deployments.apps",
                               "statefulsets.apps", "daemonsets.apps", "jobs.batch"}) {
    if (request.is(key)) return json::find(object, {"spec", "template"});
  }
  return nullptr;
}

}  // namespace

Result<void> check_pod_security(const AdmissionRequest& request, Warnings& warnings) {
  if (request.plain("namespaces")) return check_namespace_policies(request, warnings);
  const bool pod = request.is("pods");
  const std::string& sub = request.request.subresource;
  if (pod ? sub == "status" : !sub.empty()) return {};
  const json::value* subject = pod ? &request.object : template_of(request);
  if (subject == nullptr) return {};
  if (pod && !request.creates() && !images_changed(*subject, *request.old)) return {};
  const Object ns = request.txn.get({.resource = "namespaces", .name = request.request.ns});
  if (ns == nullptr) return {};
  std::vector<Cause> unreadable;
  const pod_security::Policies policies = pod_security::read_policies(labels_of(*ns), unreadable);
  static const json::value kNothing = json::object();
  const auto part = [&](std::string_view name) -> const json::value& {
    const json::value* found = json::find(*subject, {name});
    return found == nullptr ? kNothing : *found;
  };
  if (pod) {
    const auto findings = pod_security::evaluate(policies.enforce, part("metadata"), part("spec"));
    if (!findings.empty()) {
      return std::unexpected(
          refused(request, fmt::format("violates PodSecurity \"{}\": {}", policies.enforce.text(),
                                       pod_security::details(findings))));
    }
  }
  const auto findings = pod_security::evaluate(policies.warn, part("metadata"), part("spec"));
  if (!findings.empty()) {
    warnings.push_back(fmt::format("would violate PodSecurity \"{}\": {}", policies.warn.text(),
                                   pod_security::details(findings)));
  }
  return {};
}

}  // namespace skiff::apiserver
