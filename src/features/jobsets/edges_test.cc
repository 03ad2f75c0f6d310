// Cases that only generated mutants (tools/mutants) asked for: single plans, looked at closely.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/meta.h"
#include "base/check.h"
#include "features/jobsets/child_job.h"
#include "features/jobsets/claims.h"
#include "features/jobsets/feature.h"
#include "features/jobsets/jobset.h"
#include "features/jobsets/plan.h"
#include "features/jobsets/policies.h"
#include "features/jobsets/testing/parse.h"

namespace skiff::jobsets {
namespace {

using testing::must_parse;

using std::chrono::microseconds;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

const Time kNow = *parse_time("2026-11-15T12:00:00Z");

// A set as it is observed, and its jobs.
struct Scene {
  json::value set = must_parse(R"({"metadata": {"name": "train", "namespace": "team", "uid": "s"},
      "spec": {"replicatedJobs": [{"name": "a"}]}})");
  std::vector<json::value> jobs = {};
  std::vector<json::value> services = {};
  std::vector<json::value> claims = {};

  explicit Scene(std::string_view spec = "{}") {
    const json::value more = must_parse(spec);
    for (const auto& [key, value] : more.get_object()) json::set(set, {"spec", key}, value);
  }

  Scene& status(std::string_view text) {
    json::set(set, {"status"}, must_parse(text));
    return *this;
  }
  Scene& job(std::string_view part, std::int64_t index, std::string_view more = "{}",
             std::string_view attempt = "0") {
    json::value out = must_parse(more);
    const std::string name = job_name("train", part, index);
    json::set(out, {"metadata", "name"}, json::string(name));
    json::set(out, {"metadata", "namespace"}, "team");
    json::set(out, {"metadata", "uid"}, json::string(name + "-uid"));
    json::set(out, {"metadata", "resourceVersion"}, "7");
    json::set(out, {"metadata", "labels", kPartName}, json::string(part));
    if (!attempt.empty()) {
      json::set(out, {"metadata", "labels", kRestartAttempt}, json::string(attempt));
    }
    jobs.push_back(std::move(out));
    return *this;
  }
  control::Plan plan(Time now = kNow) const {
    const auto shared = [](const std::vector<json::value>& list) {
      std::vector<Object> out;
      for (const json::value& each : list) out.push_back(std::make_shared<json::value>(each));
      return out;
    };
    return plan_jobset({.root = std::make_shared<json::value>(set),
                        .owned = {shared(jobs)},
                        .seen = {shared(services), shared(claims)}},
                       now);
  }
};

constexpr std::string_view kSuspendedJob = R"({"spec": {"suspend": true}})";
constexpr std::string_view kReadyJob = R"({"status": {"ready": 1, "active": 1}})";
constexpr std::string_view kFailedJob = R"({"status": {"conditions": [{"type": "Failed",
    "status": "True", "reason": "R", "message": "m",
    "lastTransitionTime": "2026-11-15T11:59:00Z"}]}})";
constexpr std::string_view kDoneJob = R"({"status": {"conditions": [{"type": "Complete",
    "status": "True"}]}})";
constexpr std::string_view kRestarting = R"({"conditions": [{"type": "RestartingJobSet",
    "status": "True", "reason": "X", "message": "x",
    "lastTransitionTime": "2026-11-15T11:00:00Z"}]})";

// create Job, delete train-a-0, patch train-a-0, ...
Strings writes(const control::Plan& plan) {
  Strings out;
  for (const client::Write& write : plan.writes) {
    const std::string name =
        write.name.empty() ? std::string(api::name(write.body)) : write.name + write.subresource;
    const char* verb = write.verb == client::Verb::kCreate   ? "create"
                       : write.verb == client::Verb::kDelete ? "delete"
                                                             : "patch";
    out.push_back(fmt::format("{} {} {}", verb, write.resource.kind, name));
  }
  return out;
}

// status reason, of the plan's status.
std::string condition(const control::Plan& plan, std::string_view type) {
  if (!plan.status) return "no status";
  const json::value root{{"status", *plan.status}};
  const json::object* found = api::condition(root, type);
  if (found == nullptr) return "none";
  return fmt::format("{} {}", json::get_string(*found, {"status"}),
                     json::get_string(*found, {"reason"}));
}

bool warned(const control::Plan& plan, std::string_view reason) {
  return std::ranges::any_of(
      plan.notes, [&](const control::Note& n) { return n.warning && n.reason == reason; });
}

std::int64_t told(const control::Plan& plan, std::string_view reason) {
  return std::ranges::count(plan.notes, reason, &control::Note::reason);
}

// The same set as the plan leaves it.
Scene after(Scene scene, const control::Plan& plan) {
  if (plan.status) json::set(scene.set, {"status"}, *plan.status);
  return scene;
}

TEST(JobSetPlan, acts_only_on_a_set_that_is_as_it_was_seen) {
  Scene scene;
  EXPECT_TRUE(scene.plan().only_if_unchanged);
  scene.services.push_back(must_parse(R"({"metadata": {"name": "train"}})"));
  scene.job("a", 0);
  EXPECT_EQ(writes(scene.plan()), Strings{});
  EXPECT_FALSE(scene.plan().only_if_unchanged);
}

TEST(JobSetPlan, comes_to_rest) {
  Scene scene;
  scene.services.push_back(must_parse(R"({"metadata": {"name": "train"}})"));
  scene.job("a", 0, kReadyJob);
  const control::Plan first = scene.plan();
  ASSERT_TRUE(first.status.has_value());
  EXPECT_EQ(json::find(*first.status, {"conditions"}), nullptr) << "nothing has happened";
  const control::Plan second = after(scene, first).plan();
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(second.notes.empty());
}

TEST(JobSetPlan, leaves_a_set_alone_that_is_being_deleted) {
  Scene scene;
  json::set(scene.set, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  EXPECT_TRUE(scene.plan().empty());
}

TEST(JobSetPlan, works_where_it_is_named_as_the_manager) {
  EXPECT_FALSE(Scene(R"({"managedBy": "jobset.sigs.k8s.io/jobset-controller"})").plan().empty());
}

TEST(JobSetPlan, looks_for_the_service_among_services) {
  Scene scene;
  scene.claims.push_back(must_parse(R"({"metadata": {"name": "data-train"}})"));
  EXPECT_EQ(writes(scene.plan()), (Strings{"create Service train", "create Job train-a-0"}));
}

TEST(JobSetPlan, makes_at_most_so_many_jobs) {
  Scene scene(R"({"network": {"enableDNSHostnames": false}})");
  json::set(scene.set, {"spec", "replicatedJobs"}, json::array{{{"name", "a"}, {"replicas", 501}}});
  const control::Plan plan = scene.plan();
  EXPECT_EQ(plan.writes.size(), static_cast<std::size_t>(kJobsPerPlan));
  EXPECT_EQ(plan.requeue_after, Duration(0));
  json::set(scene.set, {"spec", "replicatedJobs"}, json::array{{{"name", "a"}, {"replicas", 500}}});
  EXPECT_EQ(scene.plan().requeue_after, std::nullopt);
}

TEST(JobSetPlan, keeps_an_ended_set_for_its_time_to_the_end) {
  const auto with_ttl = [](std::int64_t ttl) {
    Scene scene;
    json::set(scene.set, {"spec", "ttlSecondsAfterFinished"}, ttl);
    return scene.status(R"({"conditions": [{"type": "Completed", "status": "True",
        "lastTransitionTime": "2026-11-15T12:00:00Z"}]})");
  };
  EXPECT_TRUE(with_ttl(0).plan().delete_root);
  const control::Plan almost = with_ttl(30).plan(kNow + seconds(30) - microseconds(1));
  EXPECT_FALSE(almost.delete_root);
  EXPECT_EQ(almost.requeue_after, Duration(microseconds(1)));
  EXPECT_TRUE(with_ttl(30).plan(kNow + seconds(30)).delete_root);
  EXPECT_EQ(with_ttl(1LL << 33).plan().requeue_after, Duration(seconds(1LL << 31)));
}

TEST(JobSetPlan, cleans_up_what_runs_and_what_is_left_of_earlier_attempts) {
  Scene scene;
  scene.status(R"({"restarts": 1, "conditions": [{"type": "Failed", "status": "True",
      "lastTransitionTime": "2026-11-15T12:00:00Z"}]})");
  scene.job("a", 0, "{}", "1").job("a", 1, "{}", "0");
  scene.job("a", 2, R"({"metadata": {"deletionTimestamp": "2026-11-15T12:00:00Z"}})", "1");
  scene.job("a", 3, kDoneJob, "1");
  const control::Plan plan = scene.plan();
  EXPECT_EQ(writes(plan), (Strings{"delete Job train-a-0", "delete Job train-a-1"}));
  EXPECT_EQ(plan.writes[0].uid, "train-a-0-uid");
  EXPECT_EQ(json::get_string(plan.writes[0].body, {"propagationPolicy"}), "Foreground");
  EXPECT_FALSE(plan.delete_root);
  EXPECT_EQ(plan.requeue_after, std::nullopt);
}

TEST(JobSetPlan, takes_a_job_without_an_attempt_for_one_of_an_earlier) {
  Scene scene;
  scene.job("a", 0, "{}", "");
  EXPECT_EQ(writes(scene.plan()), (Strings{"delete Job train-a-0", "create Service train"}));
}

TEST(JobSetPlan, warns_of_failures_and_restarts) {
  Scene fails;
  const control::Plan failed = fails.job("a", 0, kFailedJob).plan();
  EXPECT_TRUE(warned(failed, "FailedJobs"));
  EXPECT_EQ(condition(failed, "Failed"), "True FailedJobs");
  EXPECT_EQ(writes(failed), Strings{}) << "nothing is made for it any more";
  EXPECT_EQ(json::find(*failed.status, {"restartsCountTowardsMax"}), nullptr);

  Scene restarts(R"({"failurePolicy": {"maxRestarts": 5}})");
  restarts.status(R"({"restarts": 3, "restartsCountTowardsMax": 2})");
  const control::Plan again = restarts.job("a", 0, kFailedJob, "3").plan();
  EXPECT_TRUE(warned(again, "DefaultFailurePolicy"));
  EXPECT_TRUE(warned(again, "RestartJobSetFailurePolicyAction"));
  EXPECT_EQ(json::get_int(*again.status, {"restarts"}), 4);
  EXPECT_EQ(json::get_int(*again.status, {"restartsCountTowardsMax"}), 3);
  EXPECT_EQ(json::find(*again.status, {"terminalState"}), nullptr);
}

TEST(JobSetPlan, counts_restarts_from_nothing) {
  Scene scene(R"({"failurePolicy": {"maxRestarts": 1}})");
  const control::Plan plan = scene.job("a", 0, kFailedJob).plan();
  EXPECT_EQ(json::get_int(*plan.status, {"restarts"}), 1);
  EXPECT_EQ(json::get_int(*plan.status, {"restartsCountTowardsMax"}), 1);
}

TEST(JobSetPlan, does_not_restart_without_a_number) {
  Scene scene(R"({"failurePolicy": {"rules": []}})");
  EXPECT_EQ(condition(scene.job("a", 0, kFailedJob).plan(), "Failed"), "True ReachedMaxRestarts");
}

TEST(JobSetPlan, says_that_a_restart_is_over_when_the_set_is) {
  const auto with = [](std::string_view job, std::string_view spec = "{}") {
    return Scene(spec).status(kRestarting).job("a", 0, job).plan();
  };
  EXPECT_EQ(condition(with(kDoneJob), "RestartingJobSet"), "False JobSetCompleted");
  EXPECT_EQ(condition(with(kFailedJob), "RestartingJobSet"), "False JobSetFailed");
  EXPECT_EQ(condition(with(kReadyJob), "RestartingJobSet"), "False JobsReady");
  EXPECT_EQ(condition(with("{}"), "RestartingJobSet"), "True X") << "they are not ready yet";
  const control::Plan suspended = with(kReadyJob, R"({"suspend": true})");
  EXPECT_EQ(condition(suspended, "RestartingJobSet"), "False JobSetSuspended");
  EXPECT_EQ(told(suspended, "JobsReady"), 0) << "nobody waits for them";
}

TEST(JobSetPlan, counts_jobs_that_are_done_among_those_that_are_ready) {
  Scene scene(R"({"replicatedJobs": [{"name": "a", "replicas": 2}]})");
  scene.status(kRestarting).job("a", 0, kReadyJob).job("a", 1, kDoneJob);
  EXPECT_EQ(condition(scene.plan(), "RestartingJobSet"), "False JobsReady");
}

TEST(JobSetPlan, keeps_the_time_of_a_condition_whose_reason_alone_changes) {
  Scene scene(R"({"suspend": true})");
  scene.status(R"({"conditions": [{"type": "Suspended", "status": "True", "reason": "Old",
      "message": "old", "lastTransitionTime": "2026-11-15T11:00:00Z"}]})");
  const control::Plan plan = scene.plan();
  const json::value root{{"status", *plan.status}};
  EXPECT_EQ(condition(plan, "Suspended"), "True SuspendedJobs");
  EXPECT_EQ(json::get_string(*api::condition(root, "Suspended"), {"lastTransitionTime"}),
            "2026-11-15T11:00:00Z");
  EXPECT_EQ(told(plan, "SuspendedJobs"), 1);
  const control::Plan next = after(scene, plan).plan();
  EXPECT_EQ(told(next, "SuspendedJobs"), 0);
  json::set(scene.set, {"spec", "suspend"}, false);
  const control::Plan resumed = after(scene, plan).plan(kNow);
  EXPECT_EQ(condition(resumed, "Suspended"), "False ResumeJobs");
  EXPECT_EQ(json::get_array(*resumed.status, {"conditions"}).size(), 1U);
  const json::value now{{"status", *resumed.status}};
  EXPECT_EQ(json::get_string(*api::condition(now, "Suspended"), {"lastTransitionTime"}),
            rfc3339(kNow));
}

TEST(JobSetPlan, suspends_each_job_once) {
  Scene scene(R"({"suspend": true, "replicatedJobs": [{"name": "a", "replicas": 3}]})");
  scene.job("a", 0).job("a", 1, kSuspendedJob);
  scene.job("a", 2, R"({"metadata": {"deletionTimestamp": "2026-11-15T12:00:00Z"}})");
  const control::Plan plan = scene.plan();
  EXPECT_EQ(writes(plan), (Strings{"create Service train", "patch Job train-a-0"}));
  EXPECT_EQ(plan.writes[1].resource_version, "7") << "as it was observed";
  EXPECT_EQ(plan.writes[1].body, must_parse(R"({"spec": {"suspend": true}})"));
}

TEST(JobSetPlan, resumes_what_may_run) {
  Scene scene(R"({"replicatedJobs": [{"name": "a", "replicas": 3},
      {"name": "b", "dependsOn": [{"name": "a", "status": "Complete"}]}]})");
  scene.job("a", 0, kSuspendedJob).job("a", 1).job("b", 0, kSuspendedJob);
  scene.job("a", 2, R"({"metadata": {"deletionTimestamp": "2026-11-15T12:00:00Z"},
      "spec": {"suspend": true}})");
  const control::Plan plan = scene.plan();
  EXPECT_EQ(writes(plan), (Strings{"create Service train", "patch Job train-a-0"}));
  EXPECT_EQ(json::get_bool(plan.writes[1].body, {"spec", "suspend"}), false);
}

TEST(JobSetPlan, takes_a_start_time_away_before_it_resumes) {
  Scene scene;
  scene.job("a", 0, R"({"spec": {"suspend": true}, "status": {"startTime": "x"}})");
  EXPECT_EQ(writes(scene.plan()), (Strings{"create Service train", "patch Job train-a-0status"}));
}

TEST(JobSetPlan, resumes_in_order) {
  constexpr std::string_view kInOrder = R"({"startupPolicy": {"startupPolicyOrder": "InOrder"},
      "replicatedJobs": [{"name": "a"}, {"name": "b"}, {"name": "c"}]})";
  const auto with = [&](std::string_view first) {
    Scene scene(kInOrder);
    scene.job("a", 0, first).job("b", 0, kSuspendedJob).job("c", 0, kSuspendedJob);
    scene.status(R"({"conditions": [{"type": "Suspended", "status": "True", "reason": "X"}]})");
    return scene.plan();
  };
  const control::Plan begins = with(kSuspendedJob);
  EXPECT_EQ(writes(begins), (Strings{"create Service train", "patch Job train-a-0"}));
  EXPECT_EQ(condition(begins, "Suspended"), "True X") << "until all are resumed";
  EXPECT_EQ(condition(begins, "StartupPolicyInProgress"), "True InOrderStartupPolicyInProgress");
  EXPECT_EQ(condition(begins, "StartupPolicyCompleted"), "none");
  EXPECT_EQ(writes(with(kReadyJob)), (Strings{"create Service train", "patch Job train-b-0"}));
}

TEST(JobSetPlan, makes_all_jobs_of_a_suspended_set_whatever_their_order) {
  Scene scene(R"({"suspend": true, "startupPolicy": {"startupPolicyOrder": "InOrder"},
      "network": {"enableDNSHostnames": false},
      "replicatedJobs": [{"name": "a"}, {"name": "b"}]})");
  const control::Plan plan = scene.plan();
  EXPECT_EQ(writes(plan), (Strings{"create Job train-a-0", "create Job train-b-0"}));
  EXPECT_EQ(condition(plan, "StartupPolicyInProgress"), "none");
}

TEST(JobSetPlan, tells_nothing_of_order_where_none_is_asked_for) {
  const control::Plan plan = Scene().job("a", 0, kReadyJob).plan();
  EXPECT_EQ(condition(plan, "StartupPolicyCompleted"), "none");
  EXPECT_EQ(condition(plan, "StartupPolicyInProgress"), "none");
}

TEST(JobSetPlan, starts_in_order_anew_after_a_restart) {
  Scene scene(R"({"startupPolicy": {"startupPolicyOrder": "InOrder"}})");
  scene.status(R"({"conditions": [{"type": "StartupPolicyCompleted", "status": "True"}]})");
  const control::Plan plan = scene.plan();
  EXPECT_EQ(condition(plan, "StartupPolicyInProgress"), "True InOrderStartupPolicyInProgress");
  EXPECT_EQ(condition(plan, "StartupPolicyCompleted"), "False ");
}

TEST(JobSetPlan, says_of_no_other_condition_that_it_is_over) {
  Scene ordered(R"({"startupPolicy": {"startupPolicyOrder": "InOrder"}})");
  ordered.status(R"({"conditions": [{"type": "Mine", "status": "True", "reason": "X"}]})");
  const control::Plan complete = ordered.job("a", 0, kReadyJob).plan();
  EXPECT_EQ(condition(complete, "StartupPolicyCompleted"), "True InOrderStartupPolicyCompleted");
  EXPECT_EQ(condition(complete, "Mine"), "True X");
  const control::Plan suspended =
      Scene(R"({"suspend": true})")
          .status(R"({"conditions": [{"type": "StartupPolicyInProgress", "status": "True",
              "reason": "X"}]})")
          .plan();
  EXPECT_EQ(condition(suspended, "Suspended"), "True SuspendedJobs");
  EXPECT_EQ(condition(suspended, "StartupPolicyInProgress"), "True X");
}

TEST(JobSetPlan, makes_jobs_beside_those_that_go_unless_it_is_to_wait) {
  const auto with = [](std::string_view strategy) {
    Scene scene(fmt::format(R"({{"failurePolicy": {{"restartStrategy": "{}"}},
        "network": {{"enableDNSHostnames": false}},
        "replicatedJobs": [{{"name": "a"}}, {{"name": "b"}}]}})",
                            strategy));
    scene.status(R"({"restarts": 1})").job("b", 0, "{}", "0");
    return writes(scene.plan());
  };
  EXPECT_EQ(with("Recreate"), (Strings{"delete Job train-b-0", "create Job train-a-0"}));
  EXPECT_EQ(with("BlockingRecreate"), (Strings{"delete Job train-b-0"}));
}

Children failed_children(const std::vector<std::string>& jobs) {
  Children out;
  for (const std::string& text : jobs) {
    out.failed.push_back(std::make_shared<json::value>(must_parse(text)));
  }
  return out;
}

TEST(JobSetFailure, is_that_of_the_first_job_and_of_one_without_a_time_last) {
  const json::value set = must_parse(R"({"spec": {"replicatedJobs": []}})");
  const auto job = [](std::string_view name, std::string_view time) {
    return fmt::format(R"({{"metadata": {{"name": "{}"}}, "status": {{"conditions": [
        {{"type": "Failed", "status": "True", "lastTransitionTime": "{}"}}]}}}})",
                       name, time);
  };
  constexpr std::string_view kEarly = "2026-11-15T12:00:00Z";
  constexpr std::string_view kLate = "2026-11-15T13:00:00Z";
  const auto first = [&](const std::vector<std::string>& jobs) {
    const std::string message = judge_failure(set, failed_children(jobs), 0).message;
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(first({job("x", kEarly), job("y", kEarly)}), "x)");
  EXPECT_EQ(first({job("x", ""), job("y", kLate)}), "y)");
  EXPECT_EQ(first({R"({"metadata": {"name": "bare"}})", job("y", kLate)}), "y)");
}

TEST(JobSetFailure, is_judged_by_rules_that_fit_in_every_respect) {
  const json::value job = must_parse(R"({"metadata": {"name": "j", "labels":
      {"jobset.sigs.k8s.io/replicatedjob-name": "a"}}, "status": {"conditions":
      [{"type": "Failed", "status": "True", "reason": "Why", "message": "disk full"}]}})");
  const auto what = [&](std::string_view rule) {
    const json::value set = {
        {"spec", {{"failurePolicy", {{"maxRestarts", 9}, {"rules", {must_parse(rule)}}}}}}};
    return judge_failure(set, failed_children({json::serialize(job)}), 0).condition;
  };
  EXPECT_EQ(what(R"({"name": "r", "action": "FailJobSet"})"), "FailurePolicy_r");
  EXPECT_EQ(what(R"({"name": "r", "onJobFailureReasons": ["Else", "Why"]})"), "FailurePolicy_r");
  EXPECT_EQ(what(R"({"name": "r", "onJobFailureReasons": ["Else"]})"), "DefaultFailurePolicy");
  EXPECT_EQ(what(R"({"name": "r", "targetReplicatedJobs": ["b"]})"), "DefaultFailurePolicy");
  EXPECT_EQ(what(R"({"name": "r", "onJobFailureMessagePatterns": ["net", "^disk"]})"),
            "FailurePolicy_r");
  EXPECT_EQ(what(R"({"name": "r", "onJobFailureMessagePatterns": ["net"]})"),
            "DefaultFailurePolicy");
}

TEST(JobSetFailure, is_that_of_the_first_rule_that_fits_and_of_the_job_it_fits) {
  const json::value set = must_parse(R"({"spec": {"failurePolicy": {"maxRestarts": 9, "rules": [
      {"name": "b", "action": "RestartJobSet", "targetReplicatedJobs": ["b"]},
      {"name": "any", "action": "FailJobSet"}]}}})");
  const auto job = [](std::string_view part, std::string_view time) {
    return fmt::format(R"({{"metadata": {{"name": "job-{0}", "labels":
        {{"jobset.sigs.k8s.io/replicatedjob-name": "{0}"}}}}, "status": {{"conditions": [
        {{"type": "Failed", "status": "True", "lastTransitionTime": "{1}"}}]}}}})",
                       part, time);
  };
  const Failure failure = judge_failure(
      set, failed_children({job("a", "2026-11-15T12:00:00Z"), job("b", "2026-11-15T13:00:00Z")}),
      0);
  EXPECT_EQ(failure.condition, "FailurePolicy_b");
  EXPECT_EQ(failure.message,
            "applying RestartJobSet failure policy action (first failed job: job-b)");
}

TEST(JobSetFailure, of_a_policy_that_is_no_map_is_the_sets) {
  const json::value set = must_parse(R"({"spec": {"failurePolicy": "x"}})");
  EXPECT_EQ(judge_failure(set, failed_children({"{}"}), 0).reason, "FailedJobs");
}

TEST(JobSetParts, are_ready_with_as_many_pods_as_they_need) {
  const auto ready = [](std::string_view job) {
    Scene scene;
    scene.job("a", 0, job);
    const control::Plan plan = scene.plan();
    return json::get_int(json::get_array(*plan.status, {"replicatedJobsStatus"})[0], {"ready"});
  };
  EXPECT_EQ(ready("{}"), 0);
  EXPECT_EQ(ready(R"({"status": {"ready": 1}})"), 1);
  EXPECT_EQ(ready(R"({"status": {"succeeded": 1}})"), 1);
  EXPECT_EQ(ready(R"({"spec": {"parallelism": 2}, "status": {"ready": 1}})"), 0);
  EXPECT_EQ(ready(R"({"spec": {"parallelism": 2}, "status": {"ready": 1, "succeeded": 1}})"), 1);
  EXPECT_EQ(ready(R"({"spec": {"parallelism": 3, "completions": 1}, "status": {"ready": 1}})"), 1)
      << "no more pods are made than are to complete";
}

TEST(JobSetParts, count_their_own_jobs_only) {
  Scene scene(R"({"replicatedJobs": [{"name": "a", "replicas": 3}, {"name": "b"}],
      "failurePolicy": {"maxRestarts": 3}})");
  scene.job("a", 0, R"({"status": {"active": 1}})").job("a", 1, R"({"status": {"active": 0}})");
  scene.job("ghost", 0, kReadyJob).job("ghost", 1, kDoneJob).job("ghost", 2, kFailedJob);
  scene.job("a", 2, kFailedJob);
  const control::Plan plan = scene.plan();
  const json::array& states = json::get_array(*plan.status, {"replicatedJobsStatus"});
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(json::get_int(states[0], {"active"}), 1);
  EXPECT_EQ(json::get_int(states[0], {"failed"}), 1);
  EXPECT_EQ(json::get_int(states[0], {"suspended"}), 0);
  EXPECT_EQ(json::get_int(states[1], {"active"}), 0);
}

TEST(JobSetParts, that_wait_for_a_part_that_is_not_there_never_start) {
  const json::value part = must_parse(R"({"dependsOn": [{"name": "ghost", "status": "Ready"}]})");
  EXPECT_FALSE(may_start(part, {{.name = "a"}}));
}

TEST(JobSetSuccess, needs_a_job_that_counts) {
  Scene scene(R"({"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["b"]},
      "replicatedJobs": [{"name": "a", "replicas": 0}]})");
  EXPECT_EQ(condition(scene.plan(), "Completed"), "none");
}

TEST(JobSetChild, has_the_group_of_its_part_and_those_before_it) {
  const json::value set = must_parse(R"({"metadata": {"name": "s"}, "spec": {
      "coordinator": {"replicatedJob": "b", "jobIndex": 2, "podIndex": 3},
      "replicatedJobs": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 3}]}})");
  const json::value job = child_job(set, parts(set)[1], 1, 0);
  EXPECT_EQ(api::label(job, "jobset.sigs.k8s.io/job-group-index"), "3") << "all are one group";
  EXPECT_EQ(api::label(job, "jobset.sigs.k8s.io/group-replicas"), "5");
  EXPECT_EQ(api::label(job, "jobset.sigs.k8s.io/coordinator"), "s-b-2-3.s");
  EXPECT_EQ(json::get_bool(job, {"spec", "suspend"}), false);
}

TEST(JobSetChild, has_no_coordinator_that_nobody_named) {
  for (const char* given : {"{}", R"({"coordinator": "x"})"}) {
    const json::value set{{"metadata", {{"name", "s"}}}, {"spec", must_parse(given)}};
    EXPECT_EQ(coordinator(set), "");
  }
}

TEST(JobSetChild, keeps_the_gang_of_each_attempt) {
  const json::value set = must_parse(R"({"metadata": {"name": "s"}, "spec": {}})");
  const auto gang = [&](std::string_view annotations, std::int64_t restarts) {
    json::value part = must_parse(R"({"name": "a"})");
    json::set(part, {"template", "spec", "template", "metadata", "annotations"},
              must_parse(annotations));
    const json::value job = child_job(set, part, 0, restarts);
    const json::value* found = json::find(
        job, {"spec", "template", "metadata", "annotations", std::string_view(kGangAnnotation)});
    return found == nullptr ? json::value() : *found;
  };
  EXPECT_EQ(gang(R"({"scheduling.skiff.dev/gang": "g"})", 0), "g");
  EXPECT_EQ(gang(R"({"scheduling.skiff.dev/gang": "g"})", 1), "g-1");
  EXPECT_EQ(gang(R"({"scheduling.skiff.dev/gang": 5})", 1), 5) << "whoever wrote that";
  EXPECT_EQ(gang("{}", 1), json::value());
}

TEST(JobSetResumption, says_only_what_the_template_has) {
  const json::value job = must_parse("{}");
  EXPECT_EQ(resumption(job, must_parse("{}")),
            must_parse(R"({"spec": {"suspend": false, "template": {}}})"));
  const json::value gang = must_parse(R"({"template": {"spec": {"template": {"metadata":
      {"annotations": {"scheduling.skiff.dev/gang": "g"}}}}}})");
  EXPECT_EQ(resumption(job, gang), must_parse(R"({"spec": {"suspend": false, "template": {}}})"))
      << "the job has that of its attempt";
}

TEST(JobSetResumption, adds_to_lists_what_they_have_not) {
  const auto with = [](std::string_view spec) {
    json::value out;
    json::set(out, {"spec", "template", "spec"}, must_parse(spec));
    return out;
  };
  const json::value job = with(R"({"tolerations": [{"key": "a"}, {"key": "b"}],
      "affinity": {"nodeAffinity": {"x": 1}}})");
  const json::value part{{"template", with(R"({"tolerations": [{"key": "b"}, {"key": "c"}],
      "schedulingGates": [{"name": "g"}], "affinity": {"nodeAffinity": {"x": 1}}})")}};
  const json::value patch = resumption(job, part);
  EXPECT_EQ(json::get_array(patch, {"spec", "template", "spec", "tolerations"}),
            must_parse(R"([{"key": "a"}, {"key": "b"}, {"key": "c"}])").as_array());
  EXPECT_EQ(json::get_array(patch, {"spec", "template", "spec", "schedulingGates"}).size(), 1U);
  EXPECT_EQ(json::find(patch, {"spec", "template", "spec", "affinity"}), nullptr) << "the same";
}

TEST(JobSetService, publishes_names_early_unless_it_is_told_not_to) {
  const auto publishes = [](std::string_view spec) {
    const json::value set{{"metadata", {{"name", "s"}}}, {"spec", must_parse(spec)}};
    return json::get_bool(headless_service(set), {"spec", "publishNotReadyAddresses"});
  };
  EXPECT_EQ(publishes("{}"), true);
  EXPECT_EQ(publishes(R"({"network": {"publishNotReadyAddresses": false}})"), false);
}

TEST(JobSetDefaults, are_meant_where_nothing_is_said) {
  EXPECT_EQ(replicas(must_parse("{}")), 1);
  EXPECT_FALSE(suspended(must_parse("{}")));
  EXPECT_TRUE(has_hostnames(must_parse("{}")));
}

TEST(JobSetDefaults, number_the_rules) {
  json::value set =
      must_parse(R"({"spec": {"failurePolicy": {"rules": [{}, {"name": "x"}, {}]}}})");
  set_defaults(set);
  const json::array& rules = json::get_array(set, {"spec", "failurePolicy", "rules"});
  EXPECT_EQ(json::get_string(rules[0], {"name"}), "failurePolicyRule0");
  EXPECT_EQ(json::get_string(rules[1], {"name"}), "x");
  EXPECT_EQ(json::get_string(rules[2], {"name"}), "failurePolicyRule2");
  json::value none = "no set";
  set_defaults(none);
  EXPECT_EQ(none, "no set");
}

TEST(JobSetClaims, carry_what_their_template_says) {
  const json::value set = must_parse(R"({"metadata": {"name": "s", "uid": "u"}, "spec": {
      "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "a",
        "annotations": {"k": "v"}}}, {"metadata": {"name": "b"}}]}]}})");
  const std::vector<json::value> claims = missing_claims(set, {});
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_EQ(api::annotation(claims[0], "k"), "v");
  EXPECT_EQ(json::find(claims[1], {"metadata", "annotations"}), nullptr);
  EXPECT_NE(api::controller_of(claims[0]), nullptr) << "it goes with the set";
  json::object pod = must_parse(R"({"volumes": [{"name": "own"}], "initContainers": [
      {"volumeMounts": [{"name": "other"}, {"name": "a"}]}]})")
                         .as_object();
  add_claims(set, pod);
  EXPECT_EQ(pod["volumes"].as_array().size(), 2U) << "what is there stays; b is not mounted";
}

TEST(JobSetFeature, has_a_status_and_two_schemas) {
  const Feature feature = make();
  EXPECT_TRUE(feature.kind.has_status);
  EXPECT_FALSE(feature.kind.unconditional_update);
  ASSERT_EQ(feature.schemas.size(), 2U);
  EXPECT_EQ(feature.schemas[1].first, feature.kind.schema);
}

}  // namespace
}  // namespace skiff::jobsets
