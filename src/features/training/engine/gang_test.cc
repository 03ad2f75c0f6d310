#include "features/training/engine/gang.h"

#include <gtest/gtest.h>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::JobBuilder;
using testing::tfjob;
using testing::torchjob;
using testing::World;

struct MinCase {
  const char* sentence;
  std::optional<std::int64_t> min_available;
  std::int64_t succeeded;
  std::int64_t expected;
};

class GangMin : public ::testing::TestWithParam<MinCase> {};

TEST_P(GangMin, OfThreeWorkersAndAServer) {
  JobBuilder builder = tfjob().role("Worker", 3).role("PS", 1);
  if (GetParam().min_available) {
    builder.run("schedulingPolicy", {{"minAvailable", *GetParam().min_available}});
  }
  const json::value root = builder.build();
  const Job job = read_job(tensorflow(), root);
  EXPECT_EQ(gang_min(job, GetParam().succeeded), GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, GangMin,
    ::testing::Values(MinCase{"all replicas unless told otherwise", {}, 0, 4},
                      MinCase{"what the user asks for", 2, 0, 2},
                      MinCase{"as many as there are", 4, 0, 4},
                      MinCase{"more than there are is waited for", 5, 0, 5},
                      MinCase{"also when some are done", 5, 3, 5},
                      MinCase{"never less than one", 0, 0, 1},
                      MinCase{"replicas that are done are not waited for", {}, 3, 1},
                      MinCase{"nor is a place asked for when all are", {}, 4, 1},
                      MinCase{"nor if the user asks for more than are left", 3, 2, 2}));

struct ElasticCase {
  const char* sentence;
  const char* policy;
  std::int64_t masters;
  std::int64_t expected;
};

class ElasticGang : public ::testing::TestWithParam<ElasticCase> {};

TEST_P(ElasticGang, OfThreeWorkers) {
  JobBuilder builder = torchjob().role("Worker", 3);
  if (GetParam().masters > 0) builder.role("Master", GetParam().masters);
  const json::value root =
      builder.spec("elasticPolicy", testing::must_parse(GetParam().policy)).build();
  const Job job = read_job(pytorch(), root);
  EXPECT_EQ(gang_min(job, 0), GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, ElasticGang,
    ::testing::Values(
        ElasticCase{"it starts with the workers it can train with", R"({"minReplicas":2})", 0, 2},
        ElasticCase{"its master is always one of them", R"({"minReplicas":2})", 1, 3},
        ElasticCase{"without a least number all start together", R"({"maxReplicas":3})", 0, 3},
        ElasticCase{"as many as there are are all", R"({"minReplicas":3})", 1, 4},
        ElasticCase{"nobody waits for workers that the job does not have", R"({"minReplicas":8})",
                    0, 3},
        ElasticCase{"one at least", R"({"minReplicas":0})", 0, 1},
        ElasticCase{"which may be the master", R"({"minReplicas":0})", 1, 1}));

TEST(ElasticGang, ObeysMinAvailableFirst) {
  const json::value root = torchjob()
                               .role("Worker", 3)
                               .spec("elasticPolicy", {{"minReplicas", 1}})
                               .run("schedulingPolicy", {{"minAvailable", 3}})
                               .build();
  EXPECT_EQ(gang_min(read_job(pytorch(), root), 0), 3);
}

std::string told(const World& world, const std::string& pod) {
  return std::string(api::annotation(world.pods.at(pod), kGangMinAnnotation));
}

TEST(WaitingPods, AreToldWhenTheJobIsMadeSmaller) {
  World world(pytorch(), torchjob().role("Worker", 4).build());
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-0"), "4");
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 2);
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-0"), "2") << "with 4 it would wait for ever";
  EXPECT_EQ(told(world, "mnist-worker-1"), "2");
}

TEST(WaitingPods, AreToldWhenMinAvailableIsLowered) {
  World world(pytorch(), torchjob()
                             .role("Master", 1)
                             .role("Worker", 1)
                             .run("schedulingPolicy", {{"minAvailable", 10}})
                             .build());
  world.settle();
  EXPECT_EQ(told(world, "mnist-master-0"), "10");
  json::set(world.root, {"spec", "runPolicy", "schedulingPolicy", "minAvailable"}, 2);
  const control::Plan plan = world.plan();
  ASSERT_EQ(plan.writes.size(), 2u);
  EXPECT_EQ(plan.writes[0].verb, client::Verb::kMergePatch);
  EXPECT_EQ(plan.writes[0].uid, api::uid(world.pods["mnist-master-0"])) << "only the pod seen";
  world.settle();
  EXPECT_EQ(told(world, "mnist-master-0"), "2");
  EXPECT_EQ(told(world, "mnist-worker-0"), "2");
}

TEST(WaitingPods, AreToldWhenAnotherReplicaIsDone) {
  World world(tensorflow(),
              tfjob().role("Worker", 2, "OnFailure").spec("successPolicy", "AllWorkers").build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-1"), "2");
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-1"), "1") << "somebody may delete the pod of worker 0";
}

TEST(LostPods, OfFourWithOneDoneAskForThree) {
  World world(tensorflow(),
              tfjob().role("Worker", 4, "OnFailure").spec("successPolicy", "AllWorkers").build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  for (const char* lost : {"mnist-worker-1", "mnist-worker-2", "mnist-worker-3"}) {
    world.set_phase(lost, "Failed", 1);
  }
  world.settle();
  for (const char* again : {"mnist-worker-1", "mnist-worker-2", "mnist-worker-3"}) {
    EXPECT_EQ(told(world, again), "3") << again;
  }
}

TEST(PlacedPods, AreLeftAlone) {
  World world(pytorch(), torchjob().role("Worker", 4).build());
  world.settle();
  for (auto& [name, pod] : world.pods) json::set(pod, {"spec", "nodeName"}, "here");
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 2);
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-0"), "4") << "it has its place; what it was told is past";
}

TEST(PodsOnTheirWayOut, AreLeftAlone) {
  World world(pytorch(), torchjob().role("Worker", 2).build());
  world.settle();
  json::set(world.pods["mnist-worker-0"], {"metadata", "deletionTimestamp"},
            "2026-11-15T12:00:00Z");
  json::set(world.root, {"spec", "runPolicy", "schedulingPolicy"}, {{"minAvailable", 1}});
  world.settle();
  EXPECT_EQ(told(world, "mnist-worker-0"), "2");
  EXPECT_EQ(told(world, "mnist-worker-1"), "1");
}

}  // namespace
}  // namespace skiff::training
