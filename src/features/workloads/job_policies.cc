#include "features/workloads/job_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

constexpr Duration kBackoffFirst = std::chrono::seconds(10);
constexpr Duration kBackoffMost = std::chrono::minutes(10);

// The container whose exit code the requirement names, or null.
const json::value* exit_that_fits(const json::value& pod, const json::value& requirement) {
  const std::string_view only = json::get_string(requirement, {"containerName"});
  const bool in = json::get_string(requirement, {"operator"}) == "In";
  const json::array& values = json::get_array(requirement, {"values"});
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::value& container : json::get_array(pod, {"status", list})) {
      const auto code = json::get_int(container, {"state", "terminated", "exitCode"});
      if (!code || *code == 0) continue;
      if (!only.empty() && json::get_string(container, {"name"}) != only) continue;
      const bool listed = std::ranges::any_of(
          values, [&](const json::value& v) { return v.is_int64() && v.get_int64() == *code; });
      if (listed == in) return &container;
    }
  }
  return nullptr;
}

const json::value* condition_that_fits(const json::value& pod, const json::array& patterns) {
  for (const json::value& condition : json::get_array(pod, {"status", "conditions"})) {
    for (const json::value& pattern : patterns) {
      const bool fits =
          json::get_string(condition, {"type"}) == json::get_string(pattern, {"type"}) &&
          json::get_string(condition, {"status"}) == json::get_string(pattern, {"status"}, "True");
      if (fits) return &condition;
    }
  }
  return nullptr;
}

// What the rule says about the pod, as the beginning of a sentence; nothing where it does not fit.
std::optional<std::string> rule_fits(const json::value& rule, const json::value& pod) {
  if (const json::value* requirement = json::find(rule, {"onExitCodes"})) {
    const json::value* container = exit_that_fits(pod, *requirement);
    if (container == nullptr) return std::nullopt;
    return fmt::format("Container {} for pod {}/{} failed with exit code {}",
                       json::get_string(*container, {"name"}), api::ns(pod), api::name(pod),
                       int_at(*container, {"state", "terminated", "exitCode"}));
  }
  const json::value* condition =
      condition_that_fits(pod, json::get_array(rule, {"onPodConditions"}));
  if (condition == nullptr) return std::nullopt;
  return fmt::format("Pod {}/{} has condition {}", api::ns(pod), api::name(pod),
                     json::get_string(*condition, {"type"}));
}

}  // namespace

bool only_replaces_ended(const json::value& job) {
  return json::get_string(job, {"spec", "podReplacementPolicy"}) == "Failed";
}

bool has_failed(const json::value& job, const json::value& pod) {
  if (phase(pod) == "Failed") return true;
  return !only_replaces_ended(job) && api::deleting(pod) && phase(pod) != "Succeeded";
}

Verdict judge(const json::value& job, const json::value& failed_pod) {
  std::size_t index = 0;
  for (const json::value& rule : json::get_array(job, {"spec", "podFailurePolicy", "rules"})) {
    const auto why = rule_fits(rule, failed_pod);
    const std::string_view action = json::get_string(rule, {"action"});
    if (why && action == "Ignore") return {.counts = false};
    if (why && action == "FailIndex") return {.fails_index = true};
    if (why && action == "Count") return {};
    if (why && action == "FailJob") {
      return {.fails_job = fmt::format("{} matching FailJob rule at index {}", *why, index)};
    }
    ++index;
  }
  return {};
}

std::optional<std::string> success_by_policy(const json::value& job, const Indexes& succeeded,
                                             std::int64_t completions) {
  if (succeeded.empty()) return std::nullopt;
  std::size_t number = 0;
  for (const json::value& rule : json::get_array(job, {"spec", "successPolicy", "rules"})) {
    const auto needed = json::get_int(rule, {"succeededCount"});
    std::int64_t have = static_cast<std::int64_t>(succeeded.size());
    bool met = false;
    if (json::find(rule, {"succeededIndexes"}) != nullptr) {
      const Indexes asked =
          parse_indexes(json::get_string(rule, {"succeededIndexes"}), completions);
      have = std::ranges::count_if(asked, [&](std::int64_t i) { return succeeded.contains(i); });
      met = !asked.empty() && have == static_cast<std::int64_t>(asked.size());
      if (asked.empty()) have = -1;
    }
    if (met || (needed && have >= *needed)) {
      return fmt::format("Matched rules at index {}", number);
    }
    ++number;
  }
  return std::nullopt;
}

Time finished_at(const json::value& pod) {
  std::optional<Time> last;
  for (const json::value& container : json::get_array(pod, {"status", "containerStatuses"})) {
    const auto at = api::time_at(container, {"state", "terminated", "finishedAt"});
    if (at) last = std::max(last.value_or(*at), *at);
  }
  if (last) return *last;
  if (const json::object* state = api::condition(pod, "Ready")) {
    const json::value condition = *state;
    const auto since = api::time_at(condition, {"lastTransitionTime"});
    if (since && json::get_string(condition, {"status"}) == "False") return *since;
  }
  if (const auto deleted = api::time_at(pod, {"metadata", "deletionTimestamp"})) {
    return *deleted - std::chrono::seconds(int_at(pod, {"metadata", "deletionGracePeriodSeconds"}));
  }
  return api::created_at(pod).value_or(Time{});
}

Duration failure_backoff(std::int64_t failures) {
  if (failures <= 0) return Duration(0);
  return std::min(kBackoffMost,
                  kBackoffFirst * (std::int64_t{1} << std::min<std::int64_t>(failures - 1, 20)));
}

Duration backoff_left(const json::value& job, const std::vector<Object>& pods, Time now) {
  std::optional<Time> success;
  for (const Object& pod : pods) {
    if (phase(*pod) != "Succeeded") continue;
    success = std::max(success.value_or(Time{}), finished_at(*pod));
  }
  std::int64_t failures = 0;
  Time last = {};
  for (const Object& pod : pods) {
    if (!has_failed(job, *pod) || (success && finished_at(*pod) <= *success)) continue;
    ++failures;
    last = std::max(last, finished_at(*pod));
  }
  return std::max(Duration(0), last + failure_backoff(failures) - now);
}

std::optional<std::int64_t> completion_index(const json::value& pod) {
  const std::string_view text = api::annotation(pod, kIndexKey);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

}  // namespace skiff::workloads
