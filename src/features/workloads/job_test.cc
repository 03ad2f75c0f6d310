#include "features/workloads/job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/testing/laws.h"
#include "features/workloads/index_list.h"
#include "features/workloads/job_policies.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::Cluster;
using testing::must_parse;

json::value sum_job(std::string_view spec = "{}") {
  json::value out = {{"metadata", {{"name", "sum"}}},
                     {"spec",
                      {{"parallelism", 1},
                       {"completions", 1},
                       {"backoffLimit", 6},
                       {"template", testing::pod_template()}}}};
  json::set(out, {"spec", "template", "spec", "restartPolicy"}, "Never");
  const json::value more = must_parse(spec);
  for (const auto& [key, value] : more.as_object()) json::set(out, {"spec", key}, value);
  return out;
}

struct Jobs : ::testing::Test {
  Cluster cluster{{job_controller()}};

  void make(std::string_view spec = "{}") {
    testing::create(cluster.client(), job_resource(), sum_job(spec));
    cluster.settle();
  }
  json::value object() { return cluster.get(job_resource(), "sum"); }
  std::int64_t count(std::string_view field) { return int_at(object(), {"status", field}); }
  std::vector<std::string> working() {
    std::vector<std::string> out;
    for (const Object& pod : cluster.pods()) {
      if (active(*pod)) out.emplace_back(api::name(*pod));
    }
    return out;
  }
  std::string conditions() {
    std::string out;
    for (const json::value& condition : json::get_array(object(), {"status", "conditions"})) {
      out += fmt::format("{}{}{} ", json::get_string(condition, {"status"}) == "True" ? "" : "!",
                         json::get_string(condition, {"type"}),
                         json::get_string(condition, {"reason"}).empty()
                             ? ""
                             : fmt::format("({})", json::get_string(condition, {"reason"})));
    }
    return out;
  }
  std::string message(std::string_view type) {
    const json::value found = *api::condition(object(), type);
    return std::string(json::get_string(found, {"message"}));
  }
};

TEST_F(Jobs, run_a_pod_to_its_end_and_say_so_in_order) {
  make();
  ASSERT_EQ(working().size(), 1U);
  EXPECT_TRUE(working()[0].starts_with("sum-"));
  EXPECT_EQ(count("active"), 1);
  EXPECT_FALSE(json::get_string(object(), {"status", "startTime"}).empty());
  cluster.start_pods();
  EXPECT_EQ(count("ready"), 1);
  cluster.end_pod(working()[0], 0);
  EXPECT_EQ(conditions(), "SuccessCriteriaMet(CompletionsReached) Complete(CompletionsReached) ");
  EXPECT_EQ(count("succeeded"), 1);
  EXPECT_EQ(count("active"), 0);
  EXPECT_FALSE(json::get_string(object(), {"status", "completionTime"}).empty());
  EXPECT_EQ(cluster.told("Completed", "Job completed"), 1);
}

TEST_F(Jobs, keep_to_parallelism_until_all_completions_are_there) {
  make(R"({"parallelism": 2, "completions": 5})");
  for (int done = 1; done <= 5; ++done) {
    EXPECT_EQ(working().size(), static_cast<std::size_t>(std::min(2, 6 - done)));
    cluster.end_pod(working()[0], 0);
    EXPECT_EQ(count("succeeded"), done);
  }
  EXPECT_TRUE(api::condition_true(object(), "Complete"));
  EXPECT_EQ(cluster.pods().size(), 5U);
}

TEST_F(Jobs, without_completions_end_when_one_succeeds_and_none_works) {
  make(R"({"parallelism": 2, "completions": null})");
  cluster.end_pod(working()[0], 0);
  EXPECT_EQ(working().size(), 1U);
  EXPECT_FALSE(api::condition_true(object(), "Complete"));
  cluster.end_pod(working()[0], 0);
  EXPECT_TRUE(api::condition_true(object(), "Complete"));
}

TEST_F(Jobs, try_again_after_ten_seconds_then_twenty) {
  make();
  cluster.end_pod(working()[0], 1);
  EXPECT_EQ(count("failed"), 1);
  EXPECT_EQ(working().size(), 0U);
  cluster.pass(std::chrono::seconds(9));
  EXPECT_EQ(working().size(), 0U);
  cluster.pass(std::chrono::seconds(2));
  ASSERT_EQ(working().size(), 1U);
  cluster.end_pod(working()[0], 1);
  cluster.pass(std::chrono::seconds(18));
  EXPECT_EQ(working().size(), 0U);
  cluster.pass(std::chrono::seconds(3));
  EXPECT_EQ(working().size(), 1U);
}

TEST_F(Jobs, fail_beyond_the_backoff_limit_and_take_their_pods_along) {
  make(R"({"parallelism": 3, "completions": 3, "backoffLimit": 0})");
  cluster.end_pod(working()[0], 1);
  EXPECT_EQ(working().size(), 0U);
  EXPECT_EQ(conditions(), "FailureTarget(BackoffLimitExceeded) Failed(BackoffLimitExceeded) ");
  EXPECT_EQ(message("Failed"), "Job has reached the specified backoff limit");
  EXPECT_EQ(cluster.told("BackoffLimitExceeded"), 1);
}

TEST_F(Jobs, say_that_they_have_failed_only_when_the_last_pod_is_gone) {
  make(R"({"parallelism": 2, "completions": 2, "backoffLimit": 0})");
  const std::string slow = working()[1];
  cluster.patch(pod_resource(), slow, {{"spec", {{"nodeName", "n"}}}});
  cluster.end_pod(working()[0], 1);
  EXPECT_EQ(conditions(), "FailureTarget(BackoffLimitExceeded) ");
  EXPECT_EQ(count("terminating"), 1);
  cluster.end_pod(slow, 143);
  EXPECT_EQ(conditions(), "FailureTarget(BackoffLimitExceeded) Failed(BackoffLimitExceeded) ");
  EXPECT_EQ(count("failed"), 2);
}

TEST_F(Jobs, count_restarts_in_place_against_the_limit) {
  make(R"({"backoffLimit": 2})");
  cluster.patch(job_resource(), "sum",
                {{"spec", {{"template", {{"spec", {{"restartPolicy", "OnFailure"}}}}}}}});
  cluster.start_pods();
  json::value restarted = testing::ready_status(cluster.now());
  json::set(restarted, {"status", "containerStatuses"},
            json::array{json::object{{"name", "main"}, {"restartCount", 2}}});
  testing::change(cluster.client(), pod_resource(), working()[0], restarted, "status");
  cluster.settle();
  EXPECT_TRUE(api::condition_true(object(), "Failed"));
}

TEST_F(Jobs, end_when_their_time_is_over) {
  make(R"({"activeDeadlineSeconds": 30})");
  cluster.start_pods();
  cluster.pass(std::chrono::seconds(29));
  EXPECT_EQ(conditions(), "");
  cluster.pass(std::chrono::seconds(2));
  EXPECT_EQ(conditions(), "FailureTarget(DeadlineExceeded) Failed(DeadlineExceeded) ");
  EXPECT_EQ(working().size(), 0U);
}

TEST_F(Jobs, with_indexes_give_each_pod_its_own) {
  make(R"({"completionMode": "Indexed", "parallelism": 3, "completions": 3})");
  ASSERT_EQ(cluster.pods().size(), 3U);
  const json::value& second = *cluster.pods()[1];
  EXPECT_TRUE(api::name(second).starts_with("sum-1-"));
  EXPECT_EQ(api::annotation(second, kIndexKey), "1");
  EXPECT_EQ(api::label(second, kIndexKey), "1");
  EXPECT_EQ(json::get_string(second, {"spec", "hostname"}), "sum-1");
  const json::value& container = json::get_array(second, {"spec", "containers"})[0];
  const json::value& variable = json::get_array(container, {"env"})[0];
  EXPECT_EQ(json::get_string(variable, {"name"}), "JOB_COMPLETION_INDEX");
  EXPECT_EQ(json::get_string(variable, {"valueFrom", "fieldRef", "fieldPath"}),
            "metadata.labels['batch.kubernetes.io/job-completion-index']");
  cluster.end_pod(api::name(*cluster.pods()[0]), 0);
  cluster.end_pod(api::name(*cluster.pods()[2]), 0);
  EXPECT_EQ(json::get_string(object(), {"status", "completedIndexes"}), "0,2");
  cluster.end_pod(api::name(second), 0);
  EXPECT_EQ(json::get_string(object(), {"status", "completedIndexes"}), "0-2");
  EXPECT_EQ(count("succeeded"), 3);
  EXPECT_TRUE(api::condition_true(object(), "Complete"));
}

TEST_F(Jobs, run_a_failed_index_again_and_remember_one_that_is_done) {
  make(R"({"completionMode": "Indexed", "parallelism": 2, "completions": 2})");
  const std::string first(api::name(*cluster.pods()[0]));
  cluster.end_pod(first, 0);
  testing::remove(cluster.client(), pod_resource(), first);
  cluster.settle();
  EXPECT_EQ(working().size(), 1U);
  cluster.end_pod(working()[0], 1);
  cluster.pass(std::chrono::seconds(11));
  ASSERT_EQ(working().size(), 1U);
  EXPECT_TRUE(working()[0].starts_with("sum-1-"));
}

TEST_F(Jobs, ask_for_no_more_of_a_gang_than_is_still_to_be_done) {
  json::value gang =
      sum_job(R"({"completionMode": "Indexed", "parallelism": 3, "completions": 3})");
  constexpr std::string_view kMin = "scheduling.skiff.dev/gang-min";
  json::set(gang, {"spec", "template", "metadata", "annotations", kMin}, "3");
  testing::create(cluster.client(), job_resource(), std::move(gang));
  cluster.settle();
  const auto asked = [&](std::string_view begins) {
    for (const Object& pod : cluster.pods()) {
      if (active(*pod) && api::name(*pod).starts_with(begins)) {
        return std::string(api::annotation(*pod, kMin));
      }
    }
    return std::string("no such pod");
  };
  EXPECT_EQ(asked("sum-0-"), "3");
  cluster.start_pods();
  const std::vector<std::string> pods = working();
  cluster.end_pod(pods[0], 0);
  cluster.end_pod(pods[1], 1);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(asked("sum-1-"), "2") << "the first is done and takes no place any more";
}

TEST_F(Jobs, with_a_limit_for_each_index_let_the_others_go_on) {
  make(R"({"completionMode": "Indexed", "parallelism": 2, "completions": 2,
           "backoffLimit": 100, "backoffLimitPerIndex": 1})");
  cluster.end_pod(api::name(*cluster.pods()[0]), 1);
  EXPECT_EQ(working().size(), 1U);
  cluster.pass(std::chrono::seconds(11));
  ASSERT_EQ(working().size(), 2U);
  std::string retry;
  for (const std::string& name : working()) retry = name.starts_with("sum-0-") ? name : retry;
  EXPECT_EQ(api::annotation(cluster.get(pod_resource(), retry), kIndexFailures), "1");
  cluster.end_pod(retry, 1);
  EXPECT_EQ(json::get_string(object(), {"status", "failedIndexes"}), "0");
  EXPECT_EQ(conditions(), "");
  cluster.end_pod(working()[0], 0);
  EXPECT_EQ(conditions(), "FailureTarget(FailedIndexes) Failed(FailedIndexes) ");
}

TEST_F(Jobs, fail_at_once_where_the_failure_policy_says_so) {
  make(R"({"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
           {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}})");
  const std::string name = working()[0];
  cluster.end_pod(name, 42);
  EXPECT_EQ(conditions(), "FailureTarget(PodFailurePolicy) Failed(PodFailurePolicy) ");
  EXPECT_EQ(message("Failed"), fmt::format("Container main for pod team/{} failed with exit code "
                                           "42 matching FailJob rule at index 0",
                                           name));
}

TEST_F(Jobs, do_not_count_what_the_failure_policy_ignores) {
  make(R"({"backoffLimit": 0, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
           {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}})");
  json::value ended = testing::ended_status(137, cluster.now());
  json::set(ended, {"status", "conditions"},
            json::array{json::object{{"type", "DisruptionTarget"}, {"status", "True"}}});
  testing::change(cluster.client(), pod_resource(), working()[0], ended, "status");
  cluster.settle();
  EXPECT_EQ(count("failed"), 0);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(working().size(), 1U);
}

TEST_F(Jobs, are_done_when_the_success_policy_is_content) {
  make(R"({"completionMode": "Indexed", "parallelism": 3, "completions": 3,
           "successPolicy": {"rules": [{"succeededIndexes": "0"}]}})");
  cluster.end_pod(api::name(*cluster.pods()[0]), 0);
  EXPECT_EQ(working().size(), 0U);
  EXPECT_EQ(conditions(), "SuccessCriteriaMet(SuccessPolicy) Complete(SuccessPolicy) ");
  EXPECT_EQ(message("Complete"), "Matched rules at index 0");
}

TEST_F(Jobs, that_are_suspended_have_no_pods_and_count_none_as_failed) {
  make(R"({"parallelism": 2, "completions": 2})");
  cluster.patch(job_resource(), "sum", {{"spec", {{"suspend", true}}}});
  EXPECT_EQ(working().size(), 0U);
  EXPECT_EQ(count("failed"), 0);
  EXPECT_EQ(conditions(), "Suspended(JobSuspended) ");
  cluster.patch(job_resource(), "sum", {{"spec", {{"suspend", false}}}});
  EXPECT_EQ(working().size(), 2U);
  EXPECT_EQ(conditions(), "!Suspended(JobResumed) ");
  EXPECT_EQ(cluster.told("Suspended") + cluster.told("Resumed"), 2);
}

TEST_F(Jobs, count_a_pod_that_somebody_deletes_as_failed) {
  make();
  cluster.patch(pod_resource(), working()[0], {{"spec", {{"nodeName", "n"}}}});
  testing::remove(cluster.client(), pod_resource(), working()[0]);
  cluster.settle();
  EXPECT_EQ(count("failed"), 1);
}

TEST_F(Jobs, are_gone_when_their_time_to_live_is_over) {
  make(R"({"ttlSecondsAfterFinished": 20})");
  cluster.end_pod(working()[0], 0);
  cluster.pass(std::chrono::seconds(15));
  EXPECT_FALSE(object().is_null());
  cluster.pass(std::chrono::seconds(6));
  EXPECT_TRUE(object().is_null());
  EXPECT_TRUE(cluster.pods().empty());
}

TEST_F(Jobs, of_another_manager_are_left_alone) {
  make(R"({"managedBy": "example.com/queue"})");
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_EQ(json::find(object(), {"status"}), nullptr);
}

TEST(Indexes, are_read_and_written_as_ranges) {
  for (const std::string_view text : {"", "0", "1,2", "0-2,4,6-9", "3,5"}) {
    EXPECT_EQ(indexes_text(parse_indexes(text, 100)), text);
  }
  EXPECT_EQ(indexes_text(parse_indexes("1-50", 4)), "1-3");
  EXPECT_EQ(indexes_text(parse_indexes("x,2,1-y", 4)), "2");
}

TEST(Backoff, doubles_up_to_ten_minutes) {
  EXPECT_EQ(failure_backoff(0), std::chrono::seconds(0));
  EXPECT_EQ(failure_backoff(1), std::chrono::seconds(10));
  EXPECT_EQ(failure_backoff(4), std::chrono::seconds(80));
  EXPECT_EQ(failure_backoff(7), std::chrono::minutes(10));
  EXPECT_EQ(failure_backoff(1'000), std::chrono::minutes(10));
}

TEST(SuccessPolicy, asks_for_indexes_for_a_count_or_for_both) {
  const auto met = [](std::string_view rule, const Indexes& done) {
    json::value object = json::object{};
    json::set(object, {"spec", "successPolicy", "rules"}, json::array{must_parse(rule)});
    return success_by_policy(object, done, 10).has_value();
  };
  EXPECT_TRUE(met(R"({"succeededIndexes": "1-2"})", {1, 2, 3}));
  EXPECT_FALSE(met(R"({"succeededIndexes": "1-2"})", {1, 3}));
  EXPECT_TRUE(met(R"({"succeededIndexes": "1-2", "succeededCount": 1})", {1, 3}));
  EXPECT_TRUE(met(R"({"succeededCount": 2})", {1, 3}));
  EXPECT_FALSE(met(R"({"succeededCount": 3})", {1, 3}));
}

struct Life {
  int meddled = 0;
  std::int64_t finished = 0;

  bool step(client::Client& client, Time now, Random& random) {
    const std::vector<Object> roots = testing::all(client, job_resource());
    if (roots.empty()) return false;
    const json::value& root = *roots.front();
    if (api::condition_true(root, "Complete") || api::condition_true(root, "Failed")) return false;
    if (json::get_bool(root, {"spec", "suspend"}).value_or(false)) {
      testing::change(client, job_resource(), "sum", {{"spec", {{"suspend", false}}}});
      return true;
    }
    if (meddled < 4 && random.chance(15)) {
      ++meddled;
      json::object spec{{"suspend", true}};
      if (random.chance(50)) spec = {{"parallelism", static_cast<std::int64_t>(random.below(3))}};
      testing::change(client, job_resource(), "sum", {{"spec", spec}});
      if (meddled == 4) {
        testing::change(client, job_resource(), "sum", {{"spec", {{"parallelism", 2}}}});
      }
      return true;
    }
    for (const Object& pod : testing::all(client, pod_resource())) {
      if (!active(*pod) || api::controller_of(*pod) == nullptr) continue;
      testing::change(client, pod_resource(), api::name(*pod),
                      testing::ended_status(random.chance(25) ? 1 : 0, now), "status");
      return true;
    }
    if (meddled < 4) {
      meddled = 4;
      testing::change(client, job_resource(), "sum", {{"spec", {{"parallelism", 2}}}});
      return true;
    }
    return false;
  }
};

std::optional<std::string> wrong_job(client::Client& client) {
  const json::value root = *client.get(job_resource(), testing::kNamespace, "sum");
  std::int64_t good = 0;
  std::int64_t bad = 0;
  for (const Object& pod : testing::all(client, pod_resource())) {
    if (!api::controlled_by(*pod, api::uid(root))) continue;
    if (active(*pod)) return "a pod works on after the end";
    good += phase(*pod) == "Succeeded" ? 1 : 0;
    bad += phase(*pod) == "Failed" ? 1 : 0;
  }
  const std::int64_t failed = int_at(root, {"status", "failed"});
  if (failed != bad) return fmt::format("{} pods have failed and {} are counted", bad, failed);
  if (api::condition_true(root, "Failed")) {
    if (failed <= int_at(root, {"spec", "backoffLimit"})) return "it failed without a reason";
    return std::nullopt;
  }
  if (!api::condition_true(root, "Complete")) return "the job has not come to its end";
  if (int_at(root, {"status", "succeeded"}) != good) return "successes are miscounted";
  if (good != int_at(root, {"spec", "completions"})) return "it ran too often or too seldom";
  return std::nullopt;
}

void hold_laws(std::string_view spec) {
  Life life;
  control::testing::LawCase laws;
  laws.controller = job_controller();
  laws.arrange = [&](client::Client& client, Random&) {
    life = {};
    testing::create(client, job_resource(), sum_job(spec));
    json::value stranger = testing::pod_template();
    json::set(stranger, {"metadata", "name"}, "stranger");
    testing::create(client, pod_resource(), std::move(stranger));
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return life.step(client, now, random);
  };
  laws.wrong = wrong_job;
  laws.settle_rounds = 8;
  laws.cuts_max = 20;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

TEST(Job, keeps_the_five_laws) {
  hold_laws(R"({"parallelism": 2, "completions": 4, "backoffLimit": 3})");
}

TEST(Job, keeps_the_five_laws_with_indexes) {
  hold_laws(R"({"parallelism": 2, "completions": 4, "backoffLimit": 3,
                "completionMode": "Indexed"})");
}

}  // namespace
}  // namespace skiff::workloads
