// One replica's failure starts the whole gang again (annotation training.skiff.dev/restart: gang).
#include <gtest/gtest.h>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using testing::JobBuilder;
using testing::tfjob;
using testing::torchjob;
using testing::World;

json::value together(JobBuilder builder) {
  json::value root = builder.build();
  json::set(root, {"metadata", "annotations", kRestartAnnotation}, "gang");
  return root;
}

std::string attempts(const World& world) {
  std::string out;
  for (const auto& [name, pod] : world.pods) {
    out += name.substr(6) + "=" + std::string(api::annotation(pod, kAttemptAnnotation)) + " ";
  }
  return out;
}

void run_all(World& world) {
  world.settle();
  world.all_phases("Running");
  world.settle();
}

TEST(GangRestart, TakesEveryReplicaAndCountsOnce) {
  World world(pytorch(), together(torchjob().role("Master", 1).role("Worker", 2)));
  run_all(world);
  world.set_phase("mnist-worker-1", "Failed", 137);
  world.settle();
  EXPECT_EQ(attempts(world), "master-0=1 worker-0=1 worker-1=1 ");
  EXPECT_EQ(world.restarts(), 1);
  EXPECT_EQ(world.conditions(), "Created Restarting");
  EXPECT_EQ(world.told("PyTorchJobRestarting"), 1);
  const json::array& conditions = json::get_array(world.root, {"status", "conditions"});
  EXPECT_EQ(json::get_string(conditions.back(), {"message"}),
            "PyTorchJob team/mnist is restarting all replicas because 1 Worker replica(s) failed.");
  run_all(world);
  EXPECT_EQ(world.conditions(), "Created Running");
}

TEST(GangRestart, OfSeveralFailuresAtOnceIsOne) {
  World world(pytorch(), together(torchjob().role("Worker", 3).run("backoffLimit", 1)));
  run_all(world);
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.set_phase("mnist-worker-2", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.restarts(), 1);
  run_all(world);
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Failed") << "the second is one too many";
  EXPECT_EQ(world.restarts(), 1);
}

TEST(GangRestart, AlsoAfterAPodWasLost) {
  World world(tensorflow(), together(tfjob().role("Worker", 2)));
  run_all(world);
  world.pods.erase("mnist-worker-0");
  world.settle();
  EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 ");
  EXPECT_EQ(world.restarts(), 1);
}

TEST(GangRestart, IsProvenByTheNameOfWhatWasLost) {
  World world(tensorflow(), together(tfjob().role("Worker", 2)));
  run_all(world);
  control::Observed blind = world.observe();
  blind.owned[0].clear();
  const control::Plan plan = plan_job(tensorflow(), blind, world.now);
  EXPECT_FALSE(world.apply(plan)) << "the pods are there: an old view must not restart them";
  EXPECT_EQ(world.restarts(), 0);
}

TEST(GangRestart, IsNotMadeForAFailureThatIsFinal) {
  World world(tensorflow(), together(tfjob().role("Worker", 2, "ExitCode")));
  run_all(world);
  world.set_phase("mnist-worker-0", "Failed", 2);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Failed");
  EXPECT_EQ(world.restarts(), 0);
}

TEST(GangRestart, BringsBackReplicasThatWereDone) {
  World world(tensorflow(),
              together(tfjob().role("Worker", 2, "OnFailure").spec("successPolicy", "AllWorkers")));
  run_all(world);
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_EQ(world.count("Worker", "succeeded"), 1);
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 ") << "nobody trains alone";
  EXPECT_EQ(world.count("Worker", "succeeded"), 0);
  world.all_phases("Succeeded");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Restarting Succeeded");
}

TEST(GangRestart, WaitsUntilTheLastOldPodIsGone) {
  World world(pytorch(), together(torchjob().role("Worker", 2)));
  world.graceful = true;
  run_all(world);
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-worker-1") << "it still ends, and no new one meets it";
  EXPECT_EQ(world.conditions(), "Created Restarting");
  world.pods.clear();
  world.settle();
  EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 ");
  EXPECT_EQ(world.restarts(), 1);
}

TEST(GangRestart, LetsNoNodeStartAContainerAgain) {
  World world(pytorch(), together(torchjob().role("Master", 1, "Always").role("Worker", 1)));
  world.settle();
  for (const auto& [name, pod] : world.pods) {
    EXPECT_EQ(json::get_string(pod, {"spec", "restartPolicy"}), "Never") << name;
  }
}

TEST(GangRestart, IsAnOption) {
  json::value root = torchjob().role("Worker", 2).build();
  json::set(root, {"metadata", "annotations", kRestartAnnotation}, "replica");
  World world(pytorch(), root);
  run_all(world);
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(attempts(world), "worker-0=1 worker-1= ");
}

TEST(GangRestart, LeavesSurplusPodsOut) {
  World world(pytorch(), together(torchjob().role("Worker", 3)));
  run_all(world);
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 2);
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 ");
  EXPECT_EQ(world.restarts(), 1);
}

TEST(GangRestart, CutAtAnyStepCountsOnce) {
  for (std::size_t cut = 0; cut < 6; ++cut) {
    World world(pytorch(), together(torchjob().role("Worker", 3).run("backoffLimit", 1)));
    run_all(world);
    world.set_phase("mnist-worker-1", "Failed", 1);
    world.apply(world.plan(), cut);
    world.settle();
    EXPECT_EQ(world.restarts(), 1) << "cut after step " << cut;
    EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 worker-2=1 ") << "cut after step " << cut;
  }
}

TEST(GangRestart, AfterALossCutAtAnyStepCountsOnce) {
  for (std::size_t cut = 0; cut < 6; ++cut) {
    World world(pytorch(), together(torchjob().role("Worker", 3).run("backoffLimit", 1)));
    run_all(world);
    world.pods.erase("mnist-worker-1");
    world.apply(world.plan(), cut);
    world.settle();
    EXPECT_EQ(world.restarts(), 1) << "cut after step " << cut;
    EXPECT_EQ(attempts(world), "worker-0=1 worker-1=1 worker-2=1 ") << "cut after step " << cut;
  }
}

TEST(GangRestart, OfAPodThatIsOnlyNotSeenTakesNobodyAway) {
  World world(tensorflow(), together(tfjob().role("Worker", 2)));
  run_all(world);
  control::Observed blind = world.observe();
  blind.owned[0].erase(blind.owned[0].begin());
  EXPECT_FALSE(world.apply(plan_job(tensorflow(), blind, world.now)));
  EXPECT_EQ(world.pod_names(), "mnist-worker-0 mnist-worker-1");
}

}  // namespace
}  // namespace skiff::training
