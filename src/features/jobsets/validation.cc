#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <span>

#include "api/checks.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/names.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/jobset.h"
#include "schema/causes.h"
#include "schema/check.h"

namespace skiff::jobsets {
namespace {

using schema::child;
using schema::forbidden;
using schema::invalid;

constexpr std::size_t kManagedByBytes = 63;
constexpr std::string_view kRuleName = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
constexpr std::size_t kRuleNameBytes = 128;

bool knows(const json::value& jobset, std::string_view part) {
  return std::ranges::any_of(parts(jobset),
                             [&](const json::value& p) { return part_name(p) == part; });
}

// A name that is too long is told in the words that say what of.
void check_label(const std::string& path, std::string_view text, std::string_view shown,
                 std::string_view too_long, api::Causes& out) {
  for (const std::string& complaint : names::check_dns1035_label(text)) {
    const bool length = complaint.find("must be no more than 63") != std::string::npos;
    out.push_back(
        invalid(path, json::string(shown), length ? too_long : std::string_view(complaint)));
  }
}

void check_names(const json::value& jobset, const json::value& part, const std::string& path,
                 api::Causes& out) {
  check_label(child(path, "groupName"), json::get_string(part, {"groupName"}),
              json::get_string(part, {"groupName"}),
              ".spec.replicatedJob[].groupName is too long, must be less than 63 characters", out);
  const std::int64_t last = std::max<std::int64_t>(replicas(part) - 1, 0);
  const std::string longest = job_name(api::name(jobset), part_name(part), last);
  check_label(child(path, "name"), longest, longest,
              "JobSet name is too long, job names generated for this JobSet will exceed 63 "
              "characters",
              out);
  const auto completions = json::get_int(part, {"template", "spec", "completions"});
  if (json::get_string(part, {"template", "spec", "completionMode"}) != "Indexed" || !completions) {
    return;
  }
  const std::string pod =
      fmt::format("{}-{}-abcde", longest, std::max<std::int64_t>(*completions - 1, 0));
  check_label(child(path, "name"), pod, longest,
              "JobSet name is too long, pod names generated for this JobSet will exceed 63 "
              "characters",
              out);
}

void check_part(const json::value& jobset, std::size_t index, api::Causes& out) {
  const json::value& part = parts(jobset)[index];
  const std::string path = child("spec.replicatedJobs", index);
  const std::int64_t pods = json::get_int(part, {"template", "spec", "parallelism"}).value_or(1);
  if (pods * replicas(part) > std::numeric_limits<std::int32_t>::max()) {
    out.push_back(invalid(child(path, "replicas"), replicas(part),
                          fmt::format("the product of replicas and parallelism must not exceed {} "
                                      "for replicatedJob '{}'",
                                      std::numeric_limits<std::int32_t>::max(), part_name(part))));
  }
  check_names(jobset, part, path, out);
  const json::array& wanted = json::get_array(part, {"dependsOn"});
  if (index == 0 && !wanted.empty()) {
    out.push_back(
        forbidden(child(path, "dependsOn"), "DependsOn can't be set for the first ReplicatedJob"));
    return;
  }
  const bool in_order =
      json::get_string(jobset, {"spec", "startupPolicy", "startupPolicyOrder"}) == "InOrder";
  if (in_order && !wanted.empty()) {
    out.push_back(forbidden(child(path, "dependsOn"),
                            "StartupPolicy and DependsOn APIs are mutually exclusive"));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string_view name = json::get_string(wanted[i], {"name"});
    const auto before = std::span(parts(jobset).data(), index);
    const auto is = [&](const json::value& other) { return part_name(other) == name; };
    if (std::ranges::any_of(before, is)) continue;
    out.push_back(invalid(child(child(path, "dependsOn"), i), json::string(name),
                          fmt::format("replicatedJob: {} cannot depend on replicatedJob: {}",
                                      part_name(part), name)));
  }
}

void check_targets(const json::value& jobset, const json::value& owner, const std::string& path,
                   std::string_view where, api::Causes& out) {
  const json::array& targets = json::get_array(owner, {"targetReplicatedJobs"});
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string_view name = json::view(targets[i].as_string());
    if (knows(jobset, name)) continue;
    out.push_back(invalid(
        child(child(path, "targetReplicatedJobs"), i), json::string(name),
        fmt::format("invalid replicatedJob name '{}'{} does not appear in .spec.ReplicatedJobs",
                    name, where)));
  }
}

void check_rule(const json::value& jobset, const json::value& rule, const std::string& path,
                api::Causes& out) {
  const std::string_view name = json::get_string(rule, {"name"});
  if (name.empty() || name.size() > kRuleNameBytes) {
    out.push_back(invalid(child(path, "name"), json::string(name),
                          fmt::format("invalid failure policy rule name of length {}, the rule "
                                      "name must be at least 1 characters long and at most {} "
                                      "characters long",
                                      name.size(), kRuleNameBytes)));
  }
  if (!schema::matches_pattern(std::string(kRuleName), name)) {
    out.push_back(invalid(
        child(path, "name"), json::string(name),
        fmt::format("invalid failure policy rule name '{}', a failure policy rule name must start "
                    "with an alphabetic character, optionally followed by a string of alphanumeric "
                    "characters or '_,:', and must end with an alphanumeric character or '_'",
                    name)));
  }
  check_targets(jobset, rule, path, " in failure policy", out);
  for (const std::string& reason : json::strings(json::get_array(rule, {"onJobFailureReasons"}))) {
    if (api::is_one_of(reason, {"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes",
                                "MaxFailedIndexesExceeded", "PodFailurePolicy"})) {
      continue;
    }
    out.push_back(invalid(child(path, "onJobFailureReasons"), json::string(reason),
                          fmt::format("invalid job failure reason '{}' in failure policy is not a "
                                      "recognized job failure reason",
                                      reason)));
  }
  const json::array& patterns = json::get_array(rule, {"onJobFailureMessagePatterns"});
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::string pattern(json::view(patterns[i].as_string()));
    if (const std::string error = schema::pattern_error(pattern); !error.empty()) {
      out.push_back(invalid(child(child(path, "onJobFailureMessagePatterns"), i),
                            json::string(pattern), error));
    }
  }
  if (json::get_string(rule, {"action"}).starts_with("RestartJob") &&
      !json::get_string(rule, {"action"}).starts_with("RestartJobSet")) {
    out.push_back(forbidden(child(path, "action"),
                            "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions "
                            "are not allowed when RestartJob feature gate is disabled"));
  }
}

void check_failure_policy(const json::value& jobset, api::Causes& out) {
  const json::value* policy = json::find(jobset, {"spec", "failurePolicy"});
  if (policy == nullptr) return;
  if (json::get_string(*policy, {"restartStrategy"}) == "InPlaceRestart") {
    out.push_back(forbidden("spec.failurePolicy.restartStrategy",
                            "InPlaceRestart restart strategy cannot be set when InPlaceRestart "
                            "feature gate is disabled"));
  }
  const json::array& rules = json::get_array(*policy, {"rules"});
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    check_rule(jobset, rules[i], child("spec.failurePolicy.rules", i), out);
    by_name[std::string(json::get_string(rules[i], {"name"}))].push_back(i);
  }
  for (const auto& [name, indexes] : by_name) {
    if (indexes.size() < 2) continue;
    out.push_back(invalid(child(child("spec.failurePolicy.rules", indexes[1]), "name"),
                          json::string(name),
                          fmt::format("rule names are not unique, rules with indices [{}] all have "
                                      "the same name '{}'",
                                      fmt::join(indexes, " "), name)));
  }
}

void check_coordinator(const json::value& jobset, api::Causes& out) {
  const json::value* given = json::find(jobset, {"spec", "coordinator"});
  if (given == nullptr || !given->is_object()) return;
  const std::string path = "spec.coordinator";
  const std::string_view name = json::get_string(*given, {"replicatedJob"});
  const auto part = std::ranges::find_if(
      parts(jobset), [&](const json::value& p) { return part_name(p) == name; });
  if (part == parts(jobset).end()) {
    out.push_back(invalid(child(path, "replicatedJob"), json::string(name),
                          fmt::format("coordinator replicatedJob {} does not exist", name)));
    return;
  }
  const std::int64_t job = json::get_int(*given, {"jobIndex"}).value_or(0);
  if (job < 0 || job >= replicas(*part)) {
    out.push_back(invalid(
        child(path, "jobIndex"), job,
        fmt::format("coordinator job index {} is invalid for replicatedJob {}", job, name)));
    return;
  }
  const auto pods = json::get_int(*part, {"template", "spec", "completions"});
  if (!pods || json::get_string(*part, {"template", "spec", "completionMode"}) != "Indexed") {
    out.push_back(invalid(child(path, "replicatedJob"), json::string(name),
                          "job for coordinator pod must be indexed completion mode, and "
                          "completions number must be set"));
    return;
  }
  const std::int64_t pod = json::get_int(*given, {"podIndex"}).value_or(0);
  if (pod < 0 || pod >= *pods) {
    out.push_back(invalid(child(path, "podIndex"), pod,
                          fmt::format("coordinator pod index {} is invalid for replicatedJob {} "
                                      "job index {}",
                                      pod, name, job)));
  }
  const std::string label = coordinator(jobset);
  for (const std::string& complaint : names::check_label_value(label)) {
    out.push_back(invalid(path, json::string(label),
                          fmt::format("spec will lead to invalid label value \"{}\" for "
                                      "coordinator label \"jobset.sigs.k8s.io/coordinator\" (long "
                                      "JobSet / ReplicatedJob / SubDomain name?): {}",
                                      label, complaint)));
  }
}

void check_spec(const json::value& jobset, api::Causes& out) {
  const std::string_view domain = json::get_string(jobset, {"spec", "network", "subdomain"});
  if (!domain.empty()) {
    check_label("spec.network.subdomain", domain, domain,
                ".spec.network.subdomain is too long, must be less than 63 characters", out);
  }
  const std::string_view manager = json::get_string(jobset, {"spec", "managedBy"});
  if (!manager.empty()) {
    api::check_domain_path(manager, "spec.managedBy", out);
    if (manager.size() > kManagedByBytes) {
      out.push_back(schema::too_long("spec.managedBy", kManagedByBytes));
    }
  }
  for (std::size_t i = 0; i < parts(jobset).size(); ++i) check_part(jobset, i, out);
  if (const json::value* policy = json::find(jobset, {"spec", "successPolicy"})) {
    check_targets(jobset, *policy, "spec.successPolicy", "", out);
  }
  check_failure_policy(jobset, out);
  check_coordinator(jobset, out);
  check_claims(jobset, out);
}

void restore_node_affinity(json::object& spec, const json::value* before) {
  json::object& affinity = json::make_object(spec, {"affinity"});
  const json::value* old = before == nullptr ? nullptr : json::find(*before, {"affinity"});
  const json::value* kept = old == nullptr ? nullptr : json::find(*old, {"nodeAffinity"});
  if (kept != nullptr) {
    affinity["nodeAffinity"] = *kept;
  } else {
    affinity.erase("nodeAffinity");
  }
  if (affinity.empty() && old == nullptr) spec.erase("affinity");
}

// What may change of a part while the set is suspended is taken from before.
json::array with_old_hints(const json::value& now, const json::value& before) {
  json::array out = parts(now);
  for (json::value& part : out) {
    const auto old = std::ranges::find_if(
        parts(before), [&](const json::value& p) { return part_name(p) == part_name(part); });
    if (old == parts(before).end() || json::find(part, {"template"}) == nullptr) continue;
    const auto restore = [&](std::initializer_list<std::string_view> owner, std::string_view key) {
      static const std::initializer_list<std::string_view> kPod = {"template", "spec", "template"};
      const json::value* pod_before = json::find(*old, kPod);
      json::object& pod = json::make_object(part, kPod);
      json::object& place = json::make_object(pod, owner);
      const json::value* kept =
          pod_before == nullptr ? nullptr : json::find(json::get_object(*pod_before, owner), {key});
      if (kept != nullptr) {
        place[key] = *kept;
      } else {
        place.erase(key);
      }
      if (place.empty()) pod.erase(*owner.begin());
    };
    restore_node_affinity(json::make_object(part, {"template", "spec", "template", "spec"}),
                          json::find(*old, {"template", "spec", "template", "spec"}));
    restore({"metadata"}, "labels");
    restore({"metadata"}, "annotations");
    restore({"spec"}, "nodeSelector");
    restore({"spec"}, "tolerations");
    restore({"spec"}, "schedulingGates");
  }
  return out;
}

void check_changes(const json::value& jobset, const json::value& before, api::Causes& out) {
  json::value now(parts(jobset));
  if (suspended(jobset) || suspended(before)) now = with_old_hints(jobset, before);
  const json::value old(parts(before));
  api::check_immutable(&now, &old, "spec.replicatedJobs", out);
  for (const std::string_view field : {"managedBy", "network", "successPolicy", "failurePolicy",
                                       "startupPolicy", "volumeClaimPolicies"}) {
    if (api::same_value(json::find(jobset, {"spec", field}), json::find(before, {"spec", field}))) {
      continue;
    }
    const json::value* given = json::find(jobset, {"spec", field});
    out.push_back(invalid(child("spec", field), given == nullptr ? json::value() : *given,
                          "Value is immutable"));
  }
}

}  // namespace

std::vector<Cause> validate(const json::value& jobset, const api::Admission& context) {
  if (!context.subresource.empty()) return {};
  api::Causes out;
  if (context.old == nullptr) {
    check_spec(jobset, out);
  } else {
    check_changes(jobset, *context.old, out);
  }
  return out;
}

}  // namespace skiff::jobsets
