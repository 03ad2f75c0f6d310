#include "features/training/engine/suspension.h"

#include <gtest/gtest.h>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;
using testing::tfjob;
using testing::torchjob;
using testing::World;

void set_suspend(World& world, bool suspend) {
  json::set(world.root, {"spec", "runPolicy", "suspend"}, suspend);
  world.settle();
}

std::string reason_of(const World& world, std::string_view type) {
  for (const json::value& entry : json::get_array(world.root, {"status", "conditions"})) {
    if (json::get_string(entry, {"type"}) == type) {
      return std::string(json::get_string(entry, {"reason"}));
    }
  }
  return {};
}

class Suspension : public ::testing::TestWithParam<const char*> {};

TEST_P(Suspension, TakesEverythingAwayWhateverIsToBeCleanedUp) {
  World world(pytorch(), torchjob().role("Worker", 3).run("cleanPodPolicy", GetParam()).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  world.set_phase("mnist-worker-1", "Running");
  world.settle();
  set_suspend(world, true);
  EXPECT_TRUE(world.pods.empty());
  EXPECT_TRUE(world.services.empty());
  EXPECT_EQ(world.count("Worker", "active"), 0);
  EXPECT_EQ(world.conditions(), "Created !Running Suspended");
  EXPECT_EQ(reason_of(world, "Suspended"), "PyTorchJobSuspended");
  EXPECT_EQ(reason_of(world, "Running"), "PyTorchJobSuspended");
}

INSTANTIATE_TEST_SUITE_P(All, Suspension, ::testing::Values("None", "Running", "All"));

TEST(Suspension, IsToldOnceEachTime) {
  World world(tensorflow(), tfjob().role("Worker", 1).build());
  world.settle();
  for (int times = 1; times <= 3; ++times) {
    set_suspend(world, true);
    world.now += seconds{60};
    EXPECT_EQ(world.settle(), 0) << "a suspended job needs nothing";
    EXPECT_EQ(world.told("TFJobSuspended"), times);
    set_suspend(world, false);
    EXPECT_EQ(world.told("TFJobResumed"), times);
    EXPECT_EQ(reason_of(world, "Suspended"), "TFJobResumed");
  }
  EXPECT_EQ(world.restarts(), 0);
}

TEST(Suspension, TakesAwayWhatBelongsToNoReplica) {
  World world(pytorch(), torchjob().role("Worker", 3).build());
  world.settle();
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 1);
  set_suspend(world, true);
  EXPECT_TRUE(world.pods.empty());
  EXPECT_TRUE(world.services.empty());
}

TEST(Suspension, ForgetsSuccessesBecauseAllTrainAgain) {
  World world(tensorflow(), tfjob().role("Worker", 2).spec("successPolicy", "AllWorkers").build());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Succeeded");
  world.settle();
  EXPECT_EQ(world.count("Worker", "succeeded"), 1);
  set_suspend(world, true);
  set_suspend(world, false);
  EXPECT_EQ(world.pod_names(), "mnist-worker-0 mnist-worker-1");
  EXPECT_EQ(world.count("Worker", "succeeded"), 0);
}

TEST(Suspension, KeepsTheCountOfRestarts) {
  World world(pytorch(), torchjob().role("Worker", 1).run("backoffLimit", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.restarts(), 1);
  set_suspend(world, true);
  set_suspend(world, false);
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.restarts(), 1) << "the limit holds for the whole life of the job";
  EXPECT_EQ(world.conditions(), "Created !Running !Suspended Failed");
}

TEST(Suspension, OfAFinishedJobChangesNothing) {
  World world(tensorflow(), tfjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  set_suspend(world, true);
  EXPECT_EQ(world.conditions(), "Created Succeeded");
  EXPECT_EQ(world.pods.size(), 1u);
}

TEST(Suspension, StopsTheClockOfTtlAndDeadline) {
  World world(tensorflow(), tfjob()
                                .role("Worker", 1)
                                .run("activeDeadlineSeconds", 10)
                                .run("ttlSecondsAfterFinished", 10)
                                .build());
  world.settle();
  set_suspend(world, true);
  EXPECT_FALSE(world.plan().requeue_after.has_value());
  world.now += seconds{3600};
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Suspended");
  EXPECT_FALSE(world.deleted);
}

TEST(Resume, OfAJobThatWasNeverSuspendedSaysNothing) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("suspend", false).build());
  world.settle();
  EXPECT_EQ(world.told("TFJobResumed"), 0);
  EXPECT_EQ(world.conditions(), "Created");
}

}  // namespace
}  // namespace skiff::training
