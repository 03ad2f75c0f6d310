#include "features/workloads/job_gang.h"

#include <gtest/gtest.h>

#include <memory>

#include "api/meta.h"
#include "features/workloads/job.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kGang = "scheduling.skiff.dev/gang";

// A Job of `pods` pods, in the gang `g` that starts `min` together.
json::value gang_job(std::string_view name, std::int64_t pods, std::string_view min) {
  json::value out = {{"metadata", {{"name", json::string(name)}}},
                     {"spec",
                      {{"parallelism", pods},
                       {"completions", pods},
                       {"completionMode", "Indexed"},
                       {"backoffLimit", 6},
                       {"template", testing::pod_template()}}}};
  json::set(out, {"spec", "template", "spec", "restartPolicy"}, "Never");
  json::set(out, {"spec", "template", "metadata", "annotations", kGang}, "g");
  json::set(out, {"spec", "template", "metadata", "annotations", kGangMin}, json::string(min));
  return out;
}

struct JobsOfAGang : ::testing::Test {
  testing::Cluster cluster{{job_controller()}};

  void make(json::value job) {
    testing::create(cluster.client(), job_resource(), std::move(job));
    cluster.settle();
  }
  // As a JobSet makes it. The set itself is there, or what it owns would go.
  void make_of_set(json::value job) {
    const api::Resource sets{
        .group = "jobset.x-k8s.io", .version = "v1alpha2", .plural = "jobsets", .kind = "JobSet"};
    if (cluster.of(sets).empty()) {
      testing::create(cluster.client(), sets, {{"metadata", {{"name", "set"}}}});
    }
    json::value set = cluster.get(sets, "set");
    json::set(set, {"kind"}, "JobSet");
    json::set(job, {"metadata", "ownerReferences"}, json::array{api::owner_reference(set)});
    make(std::move(job));
  }
  // The pod of that job and index that has not ended.
  json::value pod(std::string_view begins) {
    for (const Object& found : cluster.pods()) {
      if (active(*found) && api::name(*found).starts_with(begins)) return *found;
    }
    return json::object{{"metadata", {{"name", "none"}}}};
  }
  std::string asked(std::string_view begins) {
    return std::string(api::annotation(pod(begins), kGangMin));
  }
  void end(std::string_view begins, int code) {
    const json::value found = pod(begins);
    cluster.end_pod(api::name(found), code);
  }
};

TEST_F(JobsOfAGang, ask_for_the_pods_of_all_of_them) {
  make(gang_job("node", 2, "3"));
  make(gang_job("launcher", 1, "3"));
  EXPECT_EQ(asked("node-0-"), "3");
  EXPECT_EQ(asked("launcher-0-"), "3") << "it is of no use without its nodes";
  cluster.start_pods();
  end("launcher-0-", 1);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(asked("launcher-0-"), "3") << "nobody is done yet";
}

TEST_F(JobsOfAGang, ask_for_no_pods_of_others_that_are_done) {
  make(gang_job("node", 2, "4"));
  make(gang_job("eval", 2, "4"));
  cluster.start_pods();
  end("node-0-", 0);
  end("eval-1-", 1);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(asked("eval-1-"), "3") << "one node is done";
  end("node-1-", 0);
  EXPECT_EQ(asked("eval-1-"), "2") << "told while it waits that the other one is, too";
  end("eval-0-", 0);
  EXPECT_EQ(asked("eval-1-"), "1") << "the last";
}

TEST_F(JobsOfAGang, count_on_others_of_their_set_that_failed_or_are_not_made_yet) {
  make_of_set(gang_job("eval", 1, "3"));
  EXPECT_EQ(asked("eval-0-"), "3") << "the nodes are not there yet";
  json::value strict = gang_job("node", 2, "3");
  json::set(strict, {"spec", "backoffLimit"}, 0);
  make_of_set(std::move(strict));
  end("node-0-", 0);
  EXPECT_EQ(asked("eval-0-"), "2");
  end("node-1-", 1);
  ASSERT_TRUE(api::condition_true(cluster.get(job_resource(), "node"), "Failed"));
  EXPECT_EQ(asked("eval-0-"), "3") << "its set starts anew, and all of it";
}

TEST_F(JobsOfAGang, do_not_wait_without_a_set_for_others_that_failed_or_are_not_there) {
  make(gang_job("eval", 1, "3"));
  EXPECT_EQ(asked("eval-0-"), "1") << "nobody knows whether others come";
  json::value strict = gang_job("node", 2, "3");
  json::set(strict, {"spec", "backoffLimit"}, 0);
  json::set(strict, {"spec", "suspend"}, true);
  make(std::move(strict));
  EXPECT_EQ(asked("eval-0-"), "3") << "one that is suspended will be resumed";
  cluster.patch(job_resource(), "node", {{"spec", {{"suspend", false}}}});
  EXPECT_EQ(asked("eval-0-"), "3");
  end("node-1-", 1);
  ASSERT_TRUE(api::condition_true(cluster.get(job_resource(), "node"), "Failed"));
  EXPECT_EQ(asked("eval-0-"), "1");
  make(gang_job("other", 2, "3"));
  EXPECT_EQ(asked("eval-0-"), "3");
  testing::remove(cluster.client(), job_resource(), "other");
  cluster.settle();
  EXPECT_EQ(asked("eval-0-"), "1") << "deleted, as by its time to live";
}

TEST_F(JobsOfAGang, ask_for_no_more_than_they_have_when_they_are_scaled_down) {
  json::value queue = gang_job("queue", 10, "10");
  json::set(queue, {"spec", "completions"}, 100);
  json::set(queue, {"spec", "completionMode"}, "NonIndexed");
  make(std::move(queue));
  EXPECT_EQ(asked("queue-"), "10");
  cluster.patch(job_resource(), "queue", {{"spec", {{"parallelism", 5}}}});
  EXPECT_EQ(asked("queue-"), "5") << "told while they wait";
  cluster.start_pods();
  end("queue-", 0);
  ASSERT_EQ(cluster.start_pods(), 1);
  for (const Object& pod : cluster.pods()) {
    if (active(*pod)) EXPECT_EQ(api::annotation(*pod, kGangMin), "5") << "also what is made then";
  }
}

TEST_F(JobsOfAGang, of_a_set_ask_for_no_more_than_they_have_when_one_is_scaled_down) {
  json::value node = gang_job("node", 3, "4");
  json::set(node, {"spec", "template", "metadata", "annotations", kGangShare}, "3");
  json::value eval = gang_job("eval", 1, "4");
  json::set(eval, {"spec", "template", "metadata", "annotations", kGangShare}, "1");
  make_of_set(node);
  EXPECT_EQ(asked("node-0-"), "4") << "the other one is still to be made";
  cluster.patch(job_resource(), "node", {{"spec", {{"parallelism", 1}}}});
  EXPECT_EQ(asked("node-"), "2") << "one of its own and one of the other";
  make_of_set(eval);
  EXPECT_EQ(asked("node-"), "2");
  EXPECT_EQ(asked("eval-0-"), "2");
  cluster.patch(job_resource(), "node", {{"spec", {{"parallelism", 3}}}});
  EXPECT_EQ(asked("eval-0-"), "4");
}

TEST_F(JobsOfAGang, of_four_with_one_done_the_three_that_were_lost_ask_for_three) {
  make(gang_job("node", 4, "4"));
  cluster.start_pods();
  end("node-0-", 0);
  for (const char* lost : {"node-1-", "node-2-", "node-3-"}) end(lost, 1);
  cluster.pass(std::chrono::minutes(2));
  for (const char* again : {"node-1-", "node-2-", "node-3-"}) EXPECT_EQ(asked(again), "3") << again;
}

TEST_F(JobsOfAGang, ask_for_as_many_as_are_to_run_where_the_gang_is_smaller_than_all_of_them) {
  make(gang_job("node", 2, "3"));
  make(gang_job("eval", 2, "3"));
  EXPECT_EQ(asked("eval-0-"), "3");
  cluster.start_pods();
  end("node-0-", 0);
  end("eval-0-", 1);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(asked("eval-0-"), "3") << "three are left to run";
  end("node-1-", 0);
  EXPECT_EQ(asked("eval-0-"), "2");
}

TEST_F(JobsOfAGang, ask_for_no_more_than_they_have_when_they_are_elastic) {
  make(gang_job("elastic", 4, "4"));
  cluster.patch(job_resource(), "elastic", {{"spec", {{"parallelism", 2}, {"completions", 2}}}});
  EXPECT_EQ(asked("elastic-0-"), "2");
}

TEST_F(JobsOfAGang, ask_for_no_more_than_their_completions) {
  json::value few = gang_job("few", 4, "4");
  json::set(few, {"spec", "completions"}, 2);
  make(std::move(few));
  EXPECT_EQ(asked("few-1-"), "2");
}

TEST_F(JobsOfAGang, tell_many_pods_a_part_at_a_time) {
  constexpr std::int64_t kMany = 700;
  make(gang_job("node", kMany, "700"));
  json::value smaller = cluster.get(job_resource(), "node");
  json::set(smaller, {"spec", "template", "metadata", "annotations", kGangMin}, "600");
  const control::Plan plan = plan_job(
      {.root = std::make_shared<const json::value>(smaller), .owned = {cluster.pods()}, .seen = {}},
      cluster.now());
  EXPECT_EQ(plan.writes.size(), 500U);
  EXPECT_EQ(plan.requeue_after, Duration(0));
  cluster.patch(job_resource(), "node",
                {{"spec", {{"template", {{"metadata", {{"annotations", {{kGangMin, "600"}}}}}}}}}});
  for (const Object& pod : cluster.pods()) {
    ASSERT_EQ(api::annotation(*pod, kGangMin), "600") << api::name(*pod);
  }
}

TEST(PodOfAGang, is_told_whatever_else_has_changed_of_it) {
  const json::value pod{
      {"metadata",
       {{"name", "p"}, {"namespace", "team"}, {"uid", "u-1"}, {"resourceVersion", "7"}}}};
  const client::Write write = tell(pod, "2");
  EXPECT_EQ(write.uid, "u-1");
  EXPECT_TRUE(write.resource_version.empty()) << "the scheduler writes pods that wait";
}

TEST(PodOfAGang, is_told_nothing_by_a_job_of_another_gang) {
  json::value pod{{"metadata", {{"name", "p"}, {"annotations", {{kGang, "g"}, {kGangMin, "5"}}}}}};
  EXPECT_TRUE(is_told_otherwise(gang_job("node", 2, "2"), pod, "2"));
  json::set(pod, {"metadata", "annotations", kGang}, "other");
  EXPECT_FALSE(is_told_otherwise(gang_job("node", 2, "2"), pod, "2"));
  json::make_object(pod, {"metadata", "annotations"}).erase(kGang);
  json::set(pod, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"}, "g");
  EXPECT_TRUE(is_told_otherwise(gang_job("node", 2, "2"), pod, "2"));
}

TEST_F(JobsOfAGang, leave_alone_pods_that_have_their_place) {
  make(gang_job("node", 2, "2"));
  const std::string placed(api::name(pod("node-0-")));
  cluster.patch(pod_resource(), placed, {{"spec", {{"nodeName", "n1"}}}});
  cluster.start_pods();
  end("node-1-", 0);
  EXPECT_EQ(asked("node-0-"), "2");
}

TEST_F(JobsOfAGang, ask_for_as_many_as_are_left_where_the_gang_is_smaller_than_the_job) {
  make(gang_job("node", 4, "3"));
  EXPECT_EQ(asked("node-3-"), "3");
  end("node-0-", 0);
  EXPECT_EQ(asked("node-3-"), "3") << "three are left";
  end("node-1-", 0);
  EXPECT_EQ(asked("node-3-"), "2");
}

TEST(JobOfAGang, looks_at_others_only_where_it_is_not_the_gang_alone) {
  const control::Related related = jobs_of_gang();
  EXPECT_TRUE(related.wants(gang_job("node", 3, "3")).empty());
  EXPECT_EQ(related.wants(gang_job("node", 2, "3")), std::vector<std::string>{"g"});
  EXPECT_EQ(related.has(gang_job("node", 3, "3")), std::vector<std::string>{"g"});
  json::value labelled = gang_job("node", 2, "3");
  json::set(labelled, {"spec", "template", "metadata", "labels", "scheduling.x-k8s.io/pod-group"},
            "group");
  json::make_object(labelled, {"spec", "template", "metadata", "annotations"}).erase(kGang);
  EXPECT_EQ(related.wants(labelled), std::vector<std::string>{"group"});
  json::value alone = gang_job("node", 2, "0");
  EXPECT_TRUE(related.has(alone).empty()) << "no number, no gang";
  EXPECT_TRUE(related.has(gang_job("node", 2, "3x")).empty()) << "nor for the scheduler";
  EXPECT_EQ(gang_min(gang_job("node", 2, "3x"), 2, {}), "");
}

}  // namespace
}  // namespace skiff::workloads
