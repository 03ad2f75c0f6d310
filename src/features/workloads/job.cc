#include "features/workloads/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "features/workloads/adoption.h"
#include "features/workloads/job_gang.h"
#include "features/workloads/job_policies.h"
#include "features/workloads/job_tally.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

constexpr std::int64_t kJobBurst = 500;

struct End {
  std::string_view target = {};  // SuccessCriteriaMet or FailureTarget
  std::string reason = {};
  std::string message = {};

  std::string_view final_type() const { return target == "FailureTarget" ? "Failed" : "Complete"; }
};

const std::vector<Object>& siblings(const control::Observed& observed) {
  static const std::vector<Object> kNone;
  return observed.seen.size() > 1 ? observed.seen[1] : kNone;
}

class JobPlan {
 public:
  JobPlan(const control::Observed& observed, Time now)
      : job_(*observed.root),
        pods_(observed.owned[0]),
        siblings_(siblings(observed)),
        now_(now),
        tally_(observed, plan_) {
    status_ = json::get_object(job_, {"status"});
    suspended_ = flag("suspend");
    for (const Object& pod : pods_) {
      if (works(*pod)) working_.push_back(pod);
      if (active(*pod) && !works(*pod)) remove(*pod);  // given up by an earlier plan
      if (api::deleting(*pod) && !ended(*pod)) ++terminating_;
    }
    active_ = static_cast<std::int64_t>(working_.size());
  }

  control::Plan make() {
    if (!status_.contains("startTime") && !suspended_) status_["startTime"] = rfc3339(now_);
    std::optional<End> end = known_end();
    if (!end) end = failure();
    if (!end) end = success_policy();
    if (end) {
      for (const Object& pod : working_) remove(*pod);
      terminating_ += active_;
      active_ = 0;
      working_.clear();
    } else {
      if (!api::deleting(job_)) manage();
      if (complete()) {
        end = End{.target = "SuccessCriteriaMet",
                  .reason = "CompletionsReached",
                  .message = "Reached expected number of succeeded pods"};
      } else if (!api::deleting(job_)) {
        tell_suspension();
      }
    }
    tell_counts();
    if (end) enact(*end);
    const json::value* before = json::find(job_, {"status"});
    json::value after = std::move(status_);
    if (before == nullptr || *before != after) plan_.status = std::move(after);
    return std::move(plan_);
  }

 private:
  bool flag(std::string_view field) const {
    return json::get_bool(job_, {"spec", field}).value_or(false);
  }

  std::optional<End> known_end() const {
    for (const std::string_view type : {"SuccessCriteriaMet", "FailureTarget"}) {
      if (!api::condition_true(job_, type)) continue;
      const json::value known = *api::condition(job_, type);
      return End{.target = type,
                 .reason = std::string(json::get_string(known, {"reason"})),
                 .message = std::string(json::get_string(known, {"message"}))};
    }
    return std::nullopt;
  }

  // Containers that are restarted in place count as failures of the job, too.
  bool past_limit_in_place(std::int64_t limit) const {
    if (json::get_string(job_, {"spec", "template", "spec", "restartPolicy"}) != "OnFailure") {
      return false;
    }
    std::int64_t restarts = 0;
    for (const Object& pod : pods_) {
      if (phase(*pod) != "Running" && phase(*pod) != "Pending") continue;
      for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
        for (const json::value& container : json::get_array(*pod, {"status", list})) {
          restarts += int_at(container, {"restartCount"});
        }
      }
    }
    return limit == 0 ? restarts > 0 : restarts >= limit;
  }

  static End failed(std::string_view reason, std::string message) {
    return {
        .target = "FailureTarget", .reason = std::string(reason), .message = std::move(message)};
  }

  std::optional<End> failure() {
    if (!tally_.policy_failure().empty()) {
      return failed("PodFailurePolicy", tally_.policy_failure());
    }
    const std::int64_t limit = int_at(job_, {"spec", "backoffLimit"}, 6);
    if (tally_.failed() > limit || past_limit_in_place(limit)) {
      return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    const auto deadline = json::get_int(job_, {"spec", "activeDeadlineSeconds"});
    const auto started = api::time_at(json::value(status_), {"startTime"});
    if (deadline && started && !suspended_) {
      const Duration left = *started + std::chrono::seconds(*deadline) - now_;
      if (left <= Duration(0)) {
        return failed("DeadlineExceeded", "Job was active longer than specified deadline");
      }
      sooner(plan_.requeue_after, left);
    }
    const auto lost = static_cast<std::int64_t>(tally_.failed_indexes().size());
    const auto most = json::get_int(job_, {"spec", "maxFailedIndexes"});
    if (most && lost > *most) {
      return failed("MaxFailedIndexesExceeded",
                    "Job has exceeded the specified maximal number of failed indexes");
    }
    if (lost > 0 && lost + tally_.succeeded() >= tally_.completions()) {
      return failed("FailedIndexes", "Job has failed indexes");
    }
    return std::nullopt;
  }

  std::optional<End> success_policy() const {
    if (!tally_.indexed()) return std::nullopt;
    auto message = success_by_policy(job_, tally_.completed(), tally_.completions());
    if (!message) return std::nullopt;
    return End{
        .target = "SuccessCriteriaMet", .reason = "SuccessPolicy", .message = std::move(*message)};
  }

  void remove(const json::value& pod) {
    plan_.writes.push_back(removal(pod_resource(), pod));
    plan_.notes.push_back(
        {.reason = "SuccessfulDelete", .message = fmt::format("Deleted pod: {}", api::name(pod))});
  }

  // Marked now and deleted by the next plan, so that its end does not count as a failure.
  void give_up(std::size_t position) {
    plan_.writes.push_back(mark_counted(*working_[position]));
    working_.erase(working_.begin() + static_cast<std::ptrdiff_t>(position));
    --active_;
  }

  // Of two pods for one index the younger goes, as does one whose index is done or out of range.
  void give_up_superfluous() {
    if (!tally_.indexed()) return;
    std::ranges::sort(working_, {}, [](const Object& pod) {
      return std::pair(api::created_at(*pod), api::name(*pod));
    });
    Indexes seen = tally_.completed();
    seen.insert(tally_.failed_indexes().begin(), tally_.failed_indexes().end());
    for (std::size_t i = 0; i < working_.size();) {
      const auto index = completion_index(*working_[i]);
      if (index && *index < tally_.completions() && seen.insert(*index).second) {
        ++i;
      } else {
        give_up(i);
      }
    }
  }

  std::int64_t wanted() const {
    if (suspended_) return 0;
    return left_to_run(job_, {.succeeded = tally_.succeeded(),
                              .lost = static_cast<std::int64_t>(tally_.failed_indexes().size()),
                              .active = active_});
  }

  // The rest are told by the next plan: until then the highest number in the gang holds.
  std::int64_t tell_waiting() {
    std::int64_t told = 0;
    for (const Object& pod : working_) {
      if (!is_told_otherwise(job_, *pod, gang_min_)) continue;
      if (told == kJobBurst) {
        sooner(plan_.requeue_after, Duration(0));
        break;
      }
      plan_.writes.push_back(tell(*pod, gang_min_));
      ++told;
    }
    return told;
  }

  void manage() {
    give_up_superfluous();
    const std::int64_t want = wanted();
    std::ranges::sort(working_, {}, [](const Object& pod) {
      return std::tuple(!ready(*pod), api::created_at(*pod), api::name(*pod));
    });
    while (active_ > want) give_up(working_.size() - 1);
    gang_min_ = gang_min(job_, want, siblings_);
    const std::int64_t told = tell_waiting();
    const std::int64_t leaving = only_replaces_ended(job_) ? terminating_ : 0;
    const std::int64_t missing = std::min(want - leaving - active_, kJobBurst - told);
    if (missing <= 0) return;
    const bool per_index = json::get_int(job_, {"spec", "backoffLimitPerIndex"}).has_value();
    const Duration wait = per_index ? Duration(0) : backoff_left(job_, pods_, now_);
    if (wait > Duration(0)) return sooner(plan_.requeue_after, wait);
    NewNames names(job_, pods_, now_);
    if (tally_.indexed()) return add_indexed(names, missing, per_index);
    for (std::int64_t i = 0; i < missing; ++i) {
      add(names.next(fmt::format("{}-", api::name(job_))), std::nullopt, 0);
    }
  }

  void add_indexed(NewNames& names, std::int64_t missing, bool per_index) {
    Indexes busy;
    for (const Object& pod : pods_) {
      const bool leaving = api::deleting(*pod) && !ended(*pod) && only_replaces_ended(job_);
      if (!works(*pod) && !leaving) continue;
      if (const auto index = completion_index(*pod)) busy.insert(*index);
    }
    for (std::int64_t i = 0; i < tally_.completions() && missing > 0; ++i) {
      if (busy.contains(i) || tally_.completed().contains(i)) continue;
      if (tally_.failed_indexes().contains(i)) continue;
      --missing;
      const std::int64_t failures = per_index ? tally_.failures_of(i) : 0;
      if (failures > 0) {
        const Duration wait = last_failure(i) + failure_backoff(failures) - now_;
        if (wait > Duration(0)) {
          sooner(plan_.requeue_after, wait);
          continue;
        }
      }
      add(names.next(fmt::format("{}-{}-", api::name(job_), i)), i, failures);
    }
  }

  Time last_failure(std::int64_t index) const {
    Time last = {};
    for (const Object& pod : pods_) {
      if (completion_index(*pod) == index && has_failed(job_, *pod)) {
        last = std::max(last, finished_at(*pod));
      }
    }
    return last;
  }

  static void add_index_variable(json::object& spec) {
    static constexpr std::string_view kVariable = "JOB_COMPLETION_INDEX";
    for (const std::string_view list : {"initContainers", "containers"}) {
      if (!spec.contains(list)) continue;
      for (json::value& container : spec[list].as_array()) {
        const bool there = std::ranges::any_of(
            json::get_array(container, {"env"}),
            [](const json::value& v) { return json::get_string(v, {"name"}) == kVariable; });
        if (there) continue;
        json::object& fields = container.as_object();
        if (!fields.contains("env")) fields["env"] = json::array{};
        fields["env"].as_array().push_back(json::object{
            {"name", kVariable},
            {"valueFrom",
             {{"fieldRef",
               json::object{{"apiVersion", "v1"},
                            {"fieldPath", fmt::format("metadata.labels['{}']", kIndexKey)}}}}}});
      }
    }
  }

  void add(const std::string& name, std::optional<std::int64_t> index, std::int64_t failures) {
    const json::value* pod_template = json::find(job_, {"spec", "template"});
    if (pod_template == nullptr) return;
    json::value pod = pod_from(*pod_template, name, job_);
    if (index) {
      const std::string text = std::to_string(*index);
      json::set(pod, {"metadata", "labels", kIndexKey}, json::string(text));
      json::set(pod, {"metadata", "annotations", kIndexKey}, json::string(text));
      json::set(pod, {"spec", "hostname"},
                json::string(fmt::format("{}-{}", api::name(job_), text)));
      add_index_variable(json::make_object(pod, {"spec"}));
      if (json::get_int(job_, {"spec", "backoffLimitPerIndex"})) {
        json::set(pod, {"metadata", "annotations", kIndexFailures},
                  json::string(std::to_string(failures)));
      }
    }
    if (!gang_min_.empty()) {
      json::set(pod, {"metadata", "annotations", kGangMin}, json::string(gang_min_));
    }
    plan_.writes.push_back(creation(pod_resource(), job_, std::move(pod)));
    plan_.notes.push_back({.reason = "SuccessfulCreate", .message = "Created pod: " + name});
    ++active_;
  }

  bool complete() const {
    const auto completions = json::get_int(job_, {"spec", "completions"});
    const std::int64_t needed = completions.value_or(1);
    return active_ == 0 && tally_.succeeded() >= needed;
  }

  void set_condition(std::string_view type, bool holds, std::string_view reason,
                     std::string_view message) {
    if (!status_.contains("conditions")) status_["conditions"] = json::array{};
    json::array kept;
    for (const json::value& condition : status_["conditions"].as_array()) {
      if (json::get_string(condition, {"type"}) != type) kept.push_back(condition);
    }
    kept.push_back(json::object{{"type", json::string(type)},
                                {"status", holds ? "True" : "False"},
                                {"lastProbeTime", rfc3339(now_)},
                                {"lastTransitionTime", rfc3339(now_)},
                                {"reason", json::string(reason)},
                                {"message", json::string(message)}});
    status_["conditions"] = std::move(kept);
  }

  void tell_suspension() {
    const json::object* known = api::condition(job_, "Suspended");
    const bool was = api::condition_true(job_, "Suspended");
    if (was == suspended_ || (known == nullptr && !suspended_)) return;
    set_condition("Suspended", suspended_, suspended_ ? "JobSuspended" : "JobResumed",
                  suspended_ ? "Job suspended" : "Job resumed");
    if (!suspended_) status_["startTime"] = rfc3339(now_);
    plan_.notes.push_back({.reason = suspended_ ? "Suspended" : "Resumed",
                           .message = suspended_ ? "Job suspended" : "Job resumed"});
  }

  void tell_counts() {
    set_count(status_, "active", active_);
    status_["ready"] = std::ranges::count_if(working_, [](const Object& p) { return ready(*p); });
    status_["terminating"] = terminating_;
    tally_.write(status_);
  }

  // First what the job is heading for; then, when no pod is left to wait for, its end.
  void enact(const End& end) {
    if (!api::condition_true(job_, end.target)) {
      set_condition(end.target, true, end.reason, end.message);
    }
    if (tally_.has_uncounted() || terminating_ > 0) return;
    set_condition(end.final_type(), true, end.reason, end.message);
    if (end.final_type() == "Complete") {
      status_["completionTime"] = rfc3339(now_);
      plan_.notes.push_back({.reason = "Completed", .message = "Job completed"});
    } else {
      plan_.notes.push_back({.warning = true, .reason = end.reason, .message = end.message});
    }
  }

  const json::value& job_;
  const std::vector<Object>& pods_;
  const std::vector<Object>& siblings_;  // the jobs of its gang, itself among them
  const Time now_;
  control::Plan plan_ = {};
  Tally tally_;
  json::object status_ = {};
  bool suspended_ = false;
  std::vector<Object> working_ = {};
  std::int64_t active_ = 0;
  std::int64_t terminating_ = 0;
  std::string gang_min_ = {};  // what pods are told that wait; empty: they are in no gang
};

control::Plan after_the_end(const control::Observed& observed, std::string_view type, Time now) {
  control::Plan plan;
  const json::value& job = *observed.root;
  // Made by a plan that had not seen the end yet.
  for (const Object& pod : observed.owned[0]) {
    if (active(*pod)) plan.writes.push_back(removal(pod_resource(), *pod));
  }
  const auto ttl = json::get_int(job, {"spec", "ttlSecondsAfterFinished"});
  if (!ttl || api::deleting(job)) return plan;
  const auto ended_at =
      api::time_at(json::value(*api::condition(job, type)), {"lastTransitionTime"});
  const Duration left = ended_at.value_or(now) + std::chrono::seconds(*ttl) - now;
  if (left <= Duration(0)) {
    plan.delete_root = true;
  } else {
    plan.requeue_after = left;
  }
  return plan;
}

}  // namespace

control::Plan plan_job(const control::Observed& observed, Time now) {
  const json::value& job = *observed.root;
  const std::string_view manager = json::get_string(job, {"spec", "managedBy"});
  if (!manager.empty() && manager != "kubernetes.io/job-controller") return {};
  for (const std::string_view type : {"Complete", "Failed"}) {
    if (api::condition_true(job, type)) return after_the_end(observed, type, now);
  }
  const auto selector = selector_of(job);
  if (!selector) return JobPlan(observed, now).make();
  control::Plan claims;
  if (!observed.seen.empty()) adopt(pod_resource(), job, *selector, observed.seen[0], claims);
  kept(pod_resource(), job, *selector, observed.owned[0], claims);
  // The books are kept of what is its own once that is settled.
  return claims.writes.empty() ? JobPlan(observed, now).make() : claims;
}

control::Controller job_controller() {
  return {.name = "job-controller",
          .root = job_resource(),
          .owned = {pod_resource()},
          .seen = {orphans(pod_resource()), jobs_of_gang()},
          .plan = plan_job};
}

}  // namespace skiff::workloads
