#include "features/jobsets/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "features/jobsets/child_job.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/jobset.h"
#include "features/jobsets/policies.h"

namespace skiff::jobsets {
namespace {

client::Write write_on(client::Verb verb, const json::value& job) {
  return {.verb = verb,
          .resource = job_resource(),
          .ns = std::string(api::ns(job)),
          .name = std::string(api::name(job)),
          .uid = std::string(api::uid(job))};
}

// Only if it is as it was observed.
client::Write patch(const json::value& job, json::value body, std::string subresource = {}) {
  client::Write out = write_on(client::Verb::kMergePatch, job);
  out.resource_version = api::resource_version(job);
  out.subresource = std::move(subresource);
  out.body = std::move(body);
  return out;
}

bool exclusive(std::string_view a, std::string_view b) {
  constexpr std::string_view kOne = "StartupPolicyInProgress";
  constexpr std::string_view kOther = "StartupPolicyCompleted";
  return (a == kOne && b == kOther) || (a == kOther && b == kOne);
}

class JobSetPlan {
 public:
  JobSetPlan(const control::Observed& observed, Time now)
      : observed_(observed),
        jobset_(*observed.root),
        now_(now),
        status_(json::get_object(*observed.root, {"status"})) {
    set_defaults(jobset_);
    restarts_ = json::get_int(jobset_, {"status", "restarts"}).value_or(0);
    children_ = sort_children(observed.owned[0], restarts_);
    states_ = part_states(jobset_, children_);
  }

  control::Plan make() {
    tell_parts();
    if (const json::object* end = ended()) {
      clean_up(*end);
    } else {
      for (const Object& job : children_.previous) remove(*job);
      run();
    }
    json::value after = std::move(status_);
    const json::value* before = json::find(*observed_.root, {"status"});
    if (before == nullptr || *before != after) plan_.status = std::move(after);
    // Whoever acts on an old look would start what is over.
    plan_.only_if_unchanged = !plan_.writes.empty();
    return std::move(plan_);
  }

 private:
  const json::object* ended() const {
    for (const std::string_view type : {"Completed", "Failed"}) {
      if (api::condition_true(*observed_.root, type)) {
        return api::condition(*observed_.root, type);
      }
    }
    return nullptr;
  }

  void tell_parts() {
    status_["restarts"] = restarts_;
    json::array shown;
    for (const PartState& state : states_) shown.push_back(state.shown());
    status_["replicatedJobsStatus"] = std::move(shown);
  }

  void clean_up(const json::object& end) {
    for (const Object& job : children_.active) remove(*job);
    for (const Object& job : children_.previous) remove(*job);
    const auto ttl = json::get_int(jobset_, {"spec", "ttlSecondsAfterFinished"});
    if (!ttl) return;
    const auto at = api::time_at(json::value(end), {"lastTransitionTime"});
    // The bound of the API, which also keeps the sum from overflowing.
    const auto kept = std::chrono::seconds(std::clamp<std::int64_t>(*ttl, 0, 1LL << 31));
    const Duration left = at.value_or(now_) + kept - now_;
    if (left <= Duration(0)) {
      plan_.delete_root = true;
    } else {
      plan_.requeue_after = left;
    }
  }

  void run() {
    const bool all_ready = std::ranges::all_of(states_, [](const PartState& state) {
      return state.ready + state.succeeded == state.replicas;
    });
    if (!suspended(jobset_) && all_ready) {
      set_condition("RestartingJobSet", false, "JobsReady", "all jobs are ready");
    }
    if (!children_.failed.empty()) return act_on_failure();
    if (succeeded(jobset_, children_)) return complete();
    make_service();
    for (json::value& claim : missing_claims(jobset_, observed_.seen[1])) {
      plan_.writes.push_back({.resource = claim_resource(),
                              .ns = std::string(api::ns(jobset_)),
                              .body = std::move(claim)});
    }
    make_jobs();
    if (suspended(jobset_)) {
      suspend_jobs();
    } else {
      resume_jobs();
    }
  }

  void act_on_failure() {
    const std::int64_t counted =
        json::get_int(jobset_, {"status", "restartsCountTowardsMax"}).value_or(0);
    const Failure failure = judge_failure(jobset_, children_, counted);
    if (failure.what == Failure::What::kFail) {
      set_condition("Failed", true, failure.reason, failure.message, true);
      set_condition("RestartingJobSet", false, "JobSetFailed", "jobset failed");
      status_["terminalState"] = "Failed";
      return;
    }
    status_["restarts"] = restarts_ + 1;
    if (failure.what == Failure::What::kRestart) status_["restartsCountTowardsMax"] = counted + 1;
    set_condition("RestartingJobSet", true, failure.condition, failure.message, true);
    plan_.notes.push_back({.warning = true, .reason = failure.reason, .message = failure.message});
  }

  void complete() {
    const std::string message = "jobset completed successfully";
    set_condition("Completed", true, "AllJobsCompleted", message);
    set_condition("RestartingJobSet", false, "JobSetCompleted", message);
    status_["terminalState"] = "Completed";
  }

  // One that is there is used, whoever made it.
  void make_service() {
    if (!has_hostnames(jobset_) || !observed_.seen[0].empty()) return;
    plan_.writes.push_back({.resource = service_resource(),
                            .ns = std::string(api::ns(jobset_)),
                            .body = headless_service(jobset_)});
  }

  bool in_order() const {
    return json::get_string(jobset_, {"spec", "startupPolicy", "startupPolicyOrder"}) ==
               "InOrder" &&
           !suspended(jobset_);
  }

  void make_jobs() {
    const bool blocked = json::get_string(jobset_, {"spec", "failurePolicy", "restartStrategy"}) ==
                             "BlockingRecreate" &&
                         !children_.previous.empty();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const json::value& part = parts(jobset_)[i];
      if (!may_start(part, states_)) continue;
      if (in_order() && states_[i].started()) continue;
      if (!blocked) make_jobs_of(part);
      if (!in_order()) continue;
      set_condition("StartupPolicyInProgress", true, "InOrderStartupPolicyInProgress",
                    "in order startup policy is in progress");
      return;
    }
    if (!in_order()) return;
    set_condition("StartupPolicyCompleted", true, "InOrderStartupPolicyCompleted",
                  "in order startup policy has completed");
  }

  void make_jobs_of(const json::value& part) {
    for (std::int64_t index = 0; index < replicas(part); ++index) {
      if (children_.has(job_name(api::name(jobset_), part_name(part), index))) continue;
      if (made_++ >= kJobsPerPlan) {
        plan_.requeue_after = Duration(0);
        return;
      }
      plan_.writes.push_back({.resource = job_resource(),
                              .ns = std::string(api::ns(jobset_)),
                              .body = child_job(jobset_, part, index, restarts_)});
    }
  }

  void suspend_jobs() {
    for (const Object& job : children_.active) {
      if (suspended(*job) || api::deleting(*job)) continue;
      plan_.writes.push_back(patch(*job, {{"spec", {{"suspend", true}}}}));
    }
    set_condition("Suspended", true, "SuspendedJobs", "jobset is suspended");
    set_condition("RestartingJobSet", false, "JobSetSuspended", "jobset is suspended");
  }

  void resume_jobs() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const json::value& part = parts(jobset_)[i];
      if (!may_start(part, states_)) continue;
      if (in_order() && states_[i].started()) continue;
      for (const Object& job : children_.active) {
        if (api::label(*job, kPartName) == part_name(part)) resume(*job, part);
      }
      if (in_order()) return;
    }
    set_condition("Suspended", false, "ResumeJobs", "jobset is resumed");
  }

  // A job that has a start time lets nobody change its template: that goes first, and the next plan
  // does the rest.
  void resume(const json::value& job, const json::value& part) {
    if (!suspended(job) || api::deleting(job)) return;
    const bool started = !json::get_string(job, {"status", "startTime"}).empty();
    plan_.writes.push_back(started ? patch(job, {{"status", {{"startTime", nullptr}}}}, "status")
                                   : patch(job, resumption(job, part)));
  }

  // The job stays until its pods are gone, so that two attempts never have the same names.
  void remove(const json::value& job) {
    if (api::deleting(job)) return;
    client::Write out = write_on(client::Verb::kDelete, job);
    out.body = json::object{
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Foreground"}};
    plan_.writes.push_back(std::move(out));
  }

  // What was never true is not said to be false.
  void set_condition(std::string_view type, bool holds, std::string_view reason,
                     std::string_view message, bool warning = false) {
    if (!status_.contains("conditions")) status_["conditions"] = json::array{};
    json::array& conditions = status_["conditions"].as_array();
    json::object fresh{{"type", json::string(type)},
                       {"status", holds ? "True" : "False"},
                       {"reason", json::string(reason)},
                       {"message", json::string(message)},
                       {"lastTransitionTime", rfc3339(now_)}};
    bool found = false;
    for (json::value& condition : conditions) {
      const std::string_view other = json::get_string(condition, {"type"});
      if (holds && exclusive(type, other)) condition.as_object()["status"] = "False";
      if (other != type) continue;
      found = true;
      if (json::get_string(condition, {"status"}) == (holds ? "True" : "False")) {
        fresh["lastTransitionTime"] = condition.as_object()["lastTransitionTime"];
      }
      if (condition == json::value(fresh)) return;
      condition = fresh;
    }
    if (!found && !holds) {
      if (conditions.empty()) status_.erase("conditions");
      return;
    }
    if (!found) conditions.push_back(std::move(fresh));
    plan_.notes.push_back(
        {.warning = warning, .reason = std::string(reason), .message = std::string(message)});
  }

  const control::Observed& observed_;
  json::value jobset_;
  const Time now_;
  control::Plan plan_ = {};
  json::object status_ = {};
  std::int64_t restarts_ = 0;
  Children children_ = {};
  std::vector<PartState> states_ = {};
  std::int64_t made_ = 0;
};

}  // namespace

control::Plan plan_jobset(const control::Observed& observed, Time now) {
  const std::string_view manager = json::get_string(*observed.root, {"spec", "managedBy"});
  if (api::deleting(*observed.root)) return {};
  if (!manager.empty() && manager != kOwnManager) return {};
  return JobSetPlan(observed, now).make();
}

control::Controller jobset_controller() {
  control::Related service{.resource = service_resource(),
                           .wants = [](const json::value& root) -> std::vector<std::string> {
                             return {std::string(subdomain(root))};
                           },
                           .has = [](const json::value& object) -> std::vector<std::string> {
                             return {std::string(api::name(object))};
                           }};
  control::Related claims{.resource = claim_resource(),
                          .wants = [](const json::value& root) -> std::vector<std::string> {
                            if (json::get_array(root, {"spec", "volumeClaimPolicies"}).empty())
                              return {};
                            return {std::string(api::name(root))};
                          },
                          .has = [](const json::value& claim) { return endings(api::name(claim)); },
                          .writes = true};
  return {.name = "jobset-controller",
          .root = jobset_resource(),
          .owned = {job_resource()},
          .seen = {std::move(service), std::move(claims)},
          .plan = plan_jobset};
}

}  // namespace skiff::jobsets
