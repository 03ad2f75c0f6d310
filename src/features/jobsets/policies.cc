#include "features/jobsets/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "features/jobsets/child_job.h"
#include "features/jobsets/jobset.h"
#include "schema/check.h"

namespace skiff::jobsets {
namespace {

bool contains(const json::array& list, std::string_view text) {
  return std::ranges::any_of(list, [&](const json::value& item) {
    return item.is_string() && json::view(item.get_string()) == text;
  });
}

// An empty list names everything.
bool named(const json::array& list, std::string_view text) {
  return list.empty() || contains(list, text);
}

std::int64_t attempt_of(const json::value& job) {
  const std::string_view text = api::label(job, kRestartAttempt);
  std::int64_t out = -1;  // a job without its label is not of this attempt
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

json::value failure_of(const json::value& job) {
  const json::object* found = api::condition(job, "Failed");
  return found == nullptr ? json::value(json::object{}) : json::value(*found);
}

Time failed_at(const json::value& job) {
  return api::time_at(failure_of(job), {"lastTransitionTime"}).value_or(Time::max());
}

bool fits(const json::value& rule, const json::value& job) {
  const json::value failure = failure_of(job);
  if (!named(json::get_array(rule, {"onJobFailureReasons"}),
             json::get_string(failure, {"reason"}))) {
    return false;
  }
  const json::array& patterns = json::get_array(rule, {"onJobFailureMessagePatterns"});
  const std::string_view message = json::get_string(failure, {"message"});
  if (!patterns.empty() && std::ranges::none_of(json::strings(patterns), [&](const auto& pattern) {
        return schema::matches_pattern(pattern, message);
      })) {
    return false;
  }
  return named(json::get_array(rule, {"targetReplicatedJobs"}), api::label(job, kPartName));
}

// The one that failed first, of those the rule is about.
const json::value* first_failed(const std::vector<Object>& failed, const json::value* rule) {
  const json::value* first = nullptr;
  for (const Object& job : failed) {
    if (rule != nullptr && !fits(*rule, *job)) continue;
    if (first == nullptr || failed_at(*job) < failed_at(*first)) first = job.get();
  }
  return first;
}

std::string told(std::string_view sentence, const json::value& job) {
  return fmt::format("{} (first failed job: {})", sentence, api::name(job));
}

bool counts_for_success(const json::value& jobset, std::string_view part) {
  return named(json::get_array(jobset, {"spec", "successPolicy", "targetReplicatedJobs"}), part);
}

bool pods_ready(const json::value& job) {
  const std::int64_t parallelism = json::get_int(job, {"spec", "parallelism"}).value_or(1);
  const std::int64_t pods =
      std::min(parallelism, json::get_int(job, {"spec", "completions"}).value_or(parallelism));
  return json::get_int(job, {"status", "succeeded"}).value_or(0) +
             json::get_int(job, {"status", "ready"}).value_or(0) >=
         pods;
}

}  // namespace

Children sort_children(const std::vector<Object>& jobs, std::int64_t restarts) {
  Children out;
  for (const Object& job : jobs) {
    out.names.emplace(api::name(*job));
    if (attempt_of(*job) < restarts) {
      out.previous.push_back(job);
    } else if (api::condition_true(*job, "Failed")) {
      out.failed.push_back(job);
    } else if (api::condition_true(*job, "Complete")) {
      out.succeeded.push_back(job);
    } else {
      out.active.push_back(job);
    }
  }
  return out;
}

bool succeeded(const json::value& jobset, const Children& children) {
  const auto done = std::ranges::count_if(children.succeeded, [&](const Object& job) {
    return counts_for_success(jobset, api::label(*job, kPartName));
  });
  if (done == 0) return false;
  if (json::get_string(jobset, {"spec", "successPolicy", "operator"}) == "Any") return true;
  std::int64_t wanted = 0;
  for (const json::value& part : parts(jobset)) {
    if (counts_for_success(jobset, part_name(part))) wanted += replicas(part);
  }
  return done >= wanted;
}

Failure judge_failure(const json::value& jobset, const Children& children, std::int64_t counted) {
  const json::value* policy = json::find(jobset, {"spec", "failurePolicy"});
  const json::value& first = *first_failed(children.failed, nullptr);
  if (policy == nullptr || !policy->is_object()) {
    return {.reason = "FailedJobs",
            .message = told("jobset failed due to one or more job failures", first)};
  }
  std::string_view action = "RestartJobSet";
  std::string condition = "DefaultFailurePolicy";
  const json::value* job = &first;
  for (const json::value& rule : json::get_array(*policy, {"rules"})) {
    const json::value* fitting = first_failed(children.failed, &rule);
    if (fitting == nullptr) continue;
    job = fitting;
    action = json::get_string(rule, {"action"});
    condition = fmt::format("FailurePolicy_{}", json::get_string(rule, {"name"}));
    break;
  }
  Failure out{.reason = fmt::format("{}FailurePolicyAction", action),
              .condition = std::move(condition),
              .message = told(fmt::format("applying {} failure policy action", action), *job)};
  if (action == "RestartJobSetAndIgnoreMaxRestarts") {
    out.what = Failure::What::kRestartUncounted;
  } else if (action == "RestartJobSet") {
    if (counted >= json::get_int(*policy, {"maxRestarts"}).value_or(0)) {
      return {.reason = "ReachedMaxRestarts",
              .message = told("jobset failed due to reaching max number of restarts", *job)};
    }
    out.what = Failure::What::kRestart;
  }
  return out;
}

json::object PartState::shown() const {
  return {{"name", json::string(name)}, {"ready", ready},   {"succeeded", succeeded},
          {"failed", failed},           {"active", active}, {"suspended", suspended}};
}

std::vector<PartState> part_states(const json::value& jobset, const Children& children) {
  std::vector<PartState> out;
  for (const json::value& part : parts(jobset)) {
    out.push_back({.name = part_name(part), .replicas = replicas(part)});
  }
  const auto at = [&](const Object& job) -> PartState* {
    const auto found = std::ranges::find(out, api::label(*job, kPartName), &PartState::name);
    return found == out.end() ? nullptr : &*found;
  };
  for (const Object& job : children.active) {
    PartState* part = at(job);
    if (part == nullptr) continue;
    part->ready += pods_ready(*job) ? 1 : 0;
    part->active += json::get_int(*job, {"status", "active"}).value_or(0) > 0 ? 1 : 0;
    part->suspended += suspended(*job) ? 1 : 0;
  }
  for (const Object& job : children.succeeded) {
    if (PartState* part = at(job)) ++part->succeeded;
  }
  for (const Object& job : children.failed) {
    if (PartState* part = at(job)) ++part->failed;
  }
  return out;
}

bool may_start(const json::value& part, const std::vector<PartState>& states) {
  for (const json::value& wanted : json::get_array(part, {"dependsOn"})) {
    const auto state =
        std::ranges::find(states, json::get_string(wanted, {"name"}), &PartState::name);
    if (state == states.end()) return false;
    const bool complete = json::get_string(wanted, {"status"}) == "Complete";
    if (complete ? state->succeeded != state->replicas : !state->started()) return false;
  }
  return true;
}

}  // namespace skiff::jobsets
