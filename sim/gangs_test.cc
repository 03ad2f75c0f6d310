// Two TrainJobs that do not fit together, with every controller between them and the node.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/jobsets/feature.h"
#include "features/trainer/builtin_runtimes.h"
#include "features/trainer/feature.h"
#include "features/trainer/trainjob.h"
#include "features/workloads/job.h"
#include "features/workloads/pods.h"
#include "scheduler/controller.h"

namespace skiff::sim {
namespace {

constexpr std::string_view kSetName = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kPartName = "jobset.sigs.k8s.io/replicatedjob-name";

json::value must_parse(std::string_view text) { return *json::parse(text); }

// A node with four places, and pods that take one each.
struct TwoTrainJobs : ::testing::Test {
  env::sim::Clock clock;
  control::testing::MemoryServer server{clock};
  control::Runtime runtime{server, clock};

  void SetUp() override {
    for (const control::Controller& each :
         {trainer::make().controller, jobsets::make().controller, workloads::job_controller()}) {
      runtime.add(each);
    }
    runtime.add(scheduler::make_scheduler());
    const api::Resource nodes{
        .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
    ASSERT_TRUE(server.write({.resource = nodes, .body = must_parse(R"({"metadata": {"name": "n1"},
             "status": {"allocatable": {"pods": "100", "cpu": "4"}}})")}));
    for (const client::Write& write : trainer::builtin_objects()) {
      ASSERT_TRUE(server.write(write));
    }
  }

  void settle() {
    for (int round = 0; round < 200; ++round) {
      const std::uint64_t before = server.revision();
      runtime.pump();
      if (server.revision() == before) return;
      clock.advance(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "does not settle";
  }

  void train(std::string_view name, std::string_view with, std::int64_t nodes) {
    json::value job = must_parse(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob", "spec": {"runtimeRef": {"kind": "ClusterTrainingRuntime",
        "apiGroup": "trainer.kubeflow.org"}, "trainer": {
        "resourcesPerNode": {"requests": {"cpu": "1"}}}}})");
    json::set(job, {"metadata", "name"}, json::string(name));
    json::set(job, {"spec", "runtimeRef", "name"}, json::string(with));
    json::set(job, {"spec", "trainer", "numNodes"}, nodes);
    ASSERT_TRUE(server.write(
        {.resource = trainer::trainjob_resource(), .ns = "team", .body = std::move(job)}));
  }

  std::vector<Object> pods() { return server.list(workloads::pod_resource(), "team", {})->items; }

  // The node's part: pods that have a place run; those that are to go are gone.
  void run() {
    for (int round = 0; round < 10; ++round) {
      settle();
      bool any = false;
      for (const Object& pod : pods()) {
        if (api::deleting(*pod)) {
          any = server
                    .write({.verb = client::Verb::kDelete,
                            .resource = workloads::pod_resource(),
                            .ns = "team",
                            .name = std::string(api::name(*pod)),
                            .body = json::object{{"gracePeriodSeconds", 0}}})
                    .has_value();
          continue;
        }
        const bool placed = !json::get_string(*pod, {"spec", "nodeName"}).empty();
        const std::string_view phase = json::get_string(*pod, {"status", "phase"}, "Pending");
        if (!placed || phase != "Pending") continue;
        tell(*pod, R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"}]})");
        any = true;
      }
      if (!any) return;
    }
    ADD_FAILURE() << "the node is never done";
  }

  void tell(const json::value& pod, std::string_view status) {
    ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                              .resource = workloads::pod_resource(),
                              .ns = "team",
                              .name = std::string(api::name(pod)),
                              .subresource = "status",
                              .body = json::object{{"status", must_parse(status)}}}));
  }

  // Pods of that part that run, or of all parts.
  std::vector<Object> running(std::string_view job, std::string_view part = {}) {
    std::vector<Object> out;
    for (const Object& pod : pods()) {
      if (api::label(*pod, kSetName) != job || api::deleting(*pod)) continue;
      if (!part.empty() && api::label(*pod, kPartName) != part) continue;
      if (json::get_string(*pod, {"status", "phase"}) == "Running") out.push_back(pod);
    }
    return out;
  }
  std::string counts() {
    return fmt::format("one {} two {}", running("one").size(), running("two").size());
  }
  void end(const std::vector<Object>& which, bool well) {
    for (const Object& pod : which) {
      tell(*pod, well ? R"({"phase": "Succeeded", "conditions": []})"
                      : R"({"phase": "Failed", "conditions": []})");
    }
    run();
  }
  bool complete(std::string_view name) {
    const auto job = server.get(trainer::trainjob_resource(), "team", name);
    return job && api::condition_true(*job, "Complete");
  }
};

TEST_F(TwoTrainJobs, whose_nodes_would_leave_no_room_for_their_launchers_run_one_by_one) {
  // Two nodes and a launcher each. Were the nodes placed by themselves, all places were theirs.
  for (const std::string_view name : {"one", "two"}) train(name, "deepspeed-distributed", 3);
  run();
  EXPECT_EQ(counts(), "one 3 two 0");
  end(running("one", "launcher"), true);
  EXPECT_TRUE(complete("one"));
  EXPECT_EQ(counts(), "one 0 two 3");
  end(running("two", "launcher"), true);
  EXPECT_TRUE(complete("two"));
}

TEST_F(TwoTrainJobs, keep_the_rule_when_all_pods_of_one_are_lost) {
  for (const std::string_view name : {"one", "two"}) train(name, "deepspeed-distributed", 3);
  run();
  ASSERT_EQ(counts(), "one 3 two 0");
  end(running("one"), false);
  // Its pods come back after a while; meanwhile the other one has the room.
  EXPECT_EQ(counts(), "one 0 two 3");
  clock.advance(std::chrono::seconds(30));
  run();
  EXPECT_EQ(counts(), "one 0 two 3") << "a node alone would fit, and be of no use";
  end(running("two", "launcher"), true);
  clock.advance(std::chrono::minutes(1));
  run();
  EXPECT_EQ(counts(), "one 3 two 0");
}

TEST_F(TwoTrainJobs, keep_the_rule_when_one_pod_is_done_and_the_others_are_lost) {
  train("one", "deepspeed-distributed", 4);
  run();
  train("two", "deepspeed-distributed", 2);
  run();
  ASSERT_EQ(counts(), "one 4 two 0");
  end({running("one", "node").front()}, true);
  end(running("one"), false);
  ASSERT_EQ(counts(), "one 0 two 2");
  clock.advance(std::chrono::minutes(1));
  run();
  EXPECT_EQ(counts(), "one 0 two 2") << "there is room for two of the three, of no use";
  end(running("two", "launcher"), true);
  clock.advance(std::chrono::minutes(1));
  run();
  EXPECT_EQ(counts(), "one 3 two 0");
  end(running("one", "launcher"), true);
  EXPECT_TRUE(complete("one"));
}

TEST_F(TwoTrainJobs, start_with_what_they_have_when_a_job_is_scaled_down_while_it_waits) {
  for (const std::string_view name : {"one", "two"}) train(name, "deepspeed-distributed", 3);
  run();
  ASSERT_EQ(counts(), "one 3 two 0");
  ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                            .resource = workloads::job_resource(),
                            .ns = "team",
                            .name = "two-node-0",
                            .body = json::object{{"spec", {{"parallelism", 1}}}}}));
  end(running("one", "launcher"), true);
  EXPECT_EQ(counts(), "one 0 two 2") << "with its old number it would wait for ever";
}

// Three that train and one that evaluates beside them.
struct TwoGroups : TwoTrainJobs {
  void SetUp() override {
    TwoTrainJobs::SetUp();
    json::value made = must_parse(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime", "metadata": {"name": "group"},
        "spec": {"podGroupPolicy": {"coscheduling": {}}, "mlPolicy": {"torch": {}},
        "template": {"spec": {"failurePolicy": {"maxRestarts": 3}, "replicatedJobs": [
          {"name": "fetch", "template": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "x",
            "resources": {"requests": {"cpu": "1"}}}]}}}}},
          {"name": "eval", "template": {"spec": {"backoffLimit": 3, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "x",
            "resources": {"requests": {"cpu": "1"}}}]}}}}},
          {"name": "node", "dependsOn": [{"name": "fetch", "status": "Complete"}], "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "node", "image": "x"}]}}}}}]}}}})");
    ASSERT_TRUE(
        server.write({.resource = trainer::cluster_runtime_resource(), .body = std::move(made)}));
    for (const std::string_view name : {"one", "two"}) train(name, "group", 2);
    run();
  }
};

TEST_F(TwoGroups, fetch_first_and_start_whole) {
  EXPECT_EQ(running("one", "fetch").size(), 1u);
  EXPECT_EQ(counts(), "one 1 two 1") << "what evaluates waits for the nodes and takes no room";
  end(running("two", "fetch"), true);
  EXPECT_EQ(counts(), "one 1 two 3");
  end(running("one", "fetch"), true);
  EXPECT_EQ(counts(), "one 0 two 3") << "one place is left for three";
}

TEST_F(TwoGroups, do_not_wait_for_pods_that_are_done) {
  end(running("one", "fetch"), true);
  end(running("one", "node"), true);
  EXPECT_EQ(running("one", "eval").size(), 1u);
  // Nobody remembers the pods of what is done.
  for (const Object& pod : pods()) {
    if (json::get_string(*pod, {"status", "phase"}) != "Succeeded") continue;
    ASSERT_TRUE(server.write({.verb = client::Verb::kDelete,
                              .resource = workloads::pod_resource(),
                              .ns = "team",
                              .name = std::string(api::name(*pod)),
                              .body = json::object{{"gracePeriodSeconds", 0}}}));
  }
  end(running("one", "eval"), false);
  clock.advance(std::chrono::seconds(30));
  run();
  EXPECT_EQ(running("one", "eval").size(), 1u);
  end(running("one", "eval"), true);
  EXPECT_TRUE(complete("one"));
}

TEST_F(TwoGroups, start_whole_again_when_the_set_starts_anew) {
  end(running("one", "fetch"), true);
  ASSERT_EQ(counts(), "one 3 two 1");
  end(running("two", "fetch"), true);
  ASSERT_EQ(counts(), "one 3 two 0");
  // A node that fails ends its Job, and the set starts again from the fetching.
  end({running("one", "node").front()}, false);
  EXPECT_EQ(running("two").size(), 3u);
  EXPECT_EQ(running("one", "fetch").size(), 1u);
  end(running("one", "fetch"), true);
  EXPECT_EQ(counts(), "one 0 two 3");
  end(running("two"), true);
  EXPECT_TRUE(complete("two"));
  EXPECT_EQ(counts(), "one 3 two 0");
}

}  // namespace
}  // namespace skiff::sim
