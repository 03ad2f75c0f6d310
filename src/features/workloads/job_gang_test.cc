#include "features/workloads/job_gang.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "features/workloads/job.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kGang = "scheduling.skiff.dev/gang";

// A Job of `pods` pods, in the gang `g` that starts `min` together.
json::value job(std::string_view name, std::int64_t pods, std::string_view min) {
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
  make(job("node", 2, "3"));
  make(job("launcher", 1, "3"));
  EXPECT_EQ(asked("node-0-"), "3");
  EXPECT_EQ(asked("launcher-0-"), "3") << "it is of no use without its nodes";
  cluster.start_pods();
  end("launcher-0-", 1);
  cluster.pass(std::chrono::seconds(11));
  EXPECT_EQ(asked("launcher-0-"), "3") << "nobody is done yet";
}

TEST_F(JobsOfAGang, ask_for_no_pods_of_others_that_are_done) {
  make(job("node", 2, "4"));
  make(job("eval", 2, "4"));
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

TEST_F(JobsOfAGang, count_on_others_that_failed_or_are_not_made_yet) {
  make(job("eval", 1, "3"));
  EXPECT_EQ(asked("eval-0-"), "3") << "the nodes are not there yet";
  json::value strict = job("node", 2, "3");
  json::set(strict, {"spec", "backoffLimit"}, 0);
  make(std::move(strict));
  end("node-0-", 0);
  EXPECT_EQ(asked("eval-0-"), "2");
  end("node-1-", 1);
  ASSERT_TRUE(api::condition_true(cluster.get(job_resource(), "node"), "Failed"));
  EXPECT_EQ(asked("eval-0-"), "3") << "its set starts anew, and all of it";
}

TEST_F(JobsOfAGang, leave_alone_pods_that_have_their_place) {
  make(job("node", 2, "2"));
  const std::string placed(api::name(pod("node-0-")));
  cluster.patch(pod_resource(), placed, {{"spec", {{"nodeName", "n1"}}}});
  cluster.start_pods();
  end("node-1-", 0);
  EXPECT_EQ(asked("node-0-"), "2");
}

TEST_F(JobsOfAGang, ask_for_as_many_as_are_left_where_the_gang_is_smaller_than_the_job) {
  make(job("node", 4, "3"));
  EXPECT_EQ(asked("node-3-"), "3");
  end("node-0-", 0);
  EXPECT_EQ(asked("node-3-"), "3") << "three are left";
  end("node-1-", 0);
  EXPECT_EQ(asked("node-3-"), "2");
}

TEST(JobOfAGang, looks_at_others_only_where_it_is_not_the_gang_alone) {
  const control::Related related = jobs_of_gang();
  EXPECT_TRUE(related.wants(job("node", 3, "3")).empty());
  EXPECT_EQ(related.wants(job("node", 2, "3")), std::vector<std::string>{"g"});
  EXPECT_EQ(related.has(job("node", 3, "3")), std::vector<std::string>{"g"});
  json::value labelled = job("node", 2, "3");
  json::set(labelled, {"spec", "template", "metadata", "labels", "scheduling.x-k8s.io/pod-group"},
            "group");
  json::make_object(labelled, {"spec", "template", "metadata", "annotations"}).erase(kGang);
  EXPECT_EQ(related.wants(labelled), std::vector<std::string>{"group"});
  json::value alone = job("node", 2, "0");
  EXPECT_TRUE(related.has(alone).empty()) << "no number, no gang";
}

}  // namespace
}  // namespace skiff::workloads
