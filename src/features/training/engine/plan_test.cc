#include "features/training/engine/plan.h"

#include <gtest/gtest.h>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;
using testing::tfjob;
using testing::torchjob;
using testing::World;

TEST(Job, RunsFromStartToEnd) {
  World world(tensorflow(), tfjob().role("PS", 1).role("Worker", 2).build());
  EXPECT_EQ(world.settle(), 1) << "one plan makes everything";
  EXPECT_EQ(world.pod_names(), "mnist-ps-0 mnist-worker-0 mnist-worker-1");
  EXPECT_EQ(world.services.size(), 3u);
  EXPECT_EQ(world.conditions(), "Created");
  EXPECT_EQ(json::get_string(world.root, {"status", "startTime"}), "2026-11-15T12:00:00Z");
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  EXPECT_EQ(world.count("Worker", "active"), 2);
  world.now += seconds{9};
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Succeeded");
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), "2026-11-15T12:00:09Z");
  EXPECT_EQ(world.count("Worker", "active"), 0);
  EXPECT_EQ(world.count("Worker", "succeeded"), 2) << "what still ran did its part";
  EXPECT_EQ(world.pods.size(), 3u) << "cleanPodPolicy None keeps them";
  EXPECT_EQ(world.told("TFJobSucceeded"), 1);
  EXPECT_EQ(world.told("SuccessfulCreatePod"), 3);
  EXPECT_EQ(world.told("ExitedWithCode"), 0) << "a good end is told by the job's own";
}

TEST(Job, OfAnotherManagerIsLeftAlone) {
  World world(pytorch(),
              torchjob().role("Worker", 1).run("managedBy", "kueue.x-k8s.io/multikueue").build());
  EXPECT_EQ(world.settle(), 0);
}

TEST(Job, ThatIsBeingDeletedIsLeftAlone) {
  json::value root = torchjob().role("Worker", 1).build();
  json::set(root, {"metadata", "deletionTimestamp"}, "2026-11-15T12:00:00Z");
  World world(pytorch(), root);
  EXPECT_EQ(world.settle(), 0);
}

TEST(Job, WritesNothingWhereNothingChanged) {
  World world(pytorch(), torchjob().role("Worker", 3).run("activeDeadlineSeconds", 60).build());
  world.settle();
  const control::Plan plan = world.plan();
  EXPECT_TRUE(plan.empty());
  EXPECT_TRUE(plan.notes.empty());
  EXPECT_EQ(plan.requeue_after, seconds{60});
}

TEST(Job, KeepsWhatOthersWroteIntoItsStatus) {
  World world(pytorch(), torchjob().role("Worker", 1).status({{"theirs", 7}}).build());
  world.settle();
  EXPECT_EQ(json::get_int(world.root, {"status", "theirs"}), 7);
}

struct FailureCase {
  const char* sentence;
  const char* restart;
  std::int64_t code;
  const char* conditions;
  std::int64_t restarts;
};

class Failure : public ::testing::TestWithParam<FailureCase> {};

TEST_P(Failure, OfAReplica) {
  const FailureCase& c = GetParam();
  for (const JobKind* kind : {&tensorflow(), &pytorch()}) {
    World world(*kind, testing::JobBuilder(*kind).role("Worker", 2, c.restart).build());
    world.settle();
    world.all_phases("Running");
    world.settle();
    const std::string uid(api::uid(world.pods["mnist-worker-1"]));
    world.set_phase("mnist-worker-1", "Failed", c.code);
    world.settle();
    // The other worker runs on, so that the job runs again as soon as the failure is dealt with.
    EXPECT_EQ(world.conditions(), c.conditions) << c.sentence;
    EXPECT_EQ(world.restarts(), c.restarts) << c.sentence;
    EXPECT_EQ(api::uid(world.pods["mnist-worker-1"]) != uid, c.restarts > 0) << c.sentence;
    EXPECT_EQ(world.told(kind->resource.kind + "Restarting"), c.restarts) << c.sentence;
    EXPECT_EQ(world.told("ExitedWithCode"), 1) << c.sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Failure,
    ::testing::Values(
        FailureCase{"under Always it is replaced", "Always", 1, "Created Running", 1},
        FailureCase{"under OnFailure it is replaced", "OnFailure", 1, "Created Running", 1},
        FailureCase{"under Never it ends the job", "Never", 1, "Created !Running Failed", 0},
        FailureCase{"under ExitCode a signal is retried", "ExitCode", 137, "Created Running", 1},
        FailureCase{"under ExitCode a program's own code ends the job", "ExitCode", 2,
                    "Created !Running Failed", 0}));

TEST(Restart, SaysSoBeforeTheNextPodRuns) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Restarting");
  EXPECT_EQ(api::annotation(world.pods["mnist-worker-0"], kAttemptAnnotation), "1");
  world.set_phase("mnist-worker-0", "Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
}

TEST(Restart, TellsWhyInTheMessage) {
  World world(tensorflow(), tfjob().role("Worker", 1, "Never").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  const json::array& conditions = json::get_array(world.root, {"status", "conditions"});
  EXPECT_EQ(json::get_string(conditions[conditions.size() - 1], {"message"}),
            "TFJob team/mnist has failed because 1 Worker replica(s) failed.");
}

TEST(BackoffLimit, CountsPodsThatWereReplaced) {
  World world(pytorch(), torchjob().role("Worker", 1).run("backoffLimit", 2).build());
  for (int failures = 0; failures < 3; ++failures) {
    world.settle();
    EXPECT_EQ(world.restarts(), failures);
    world.set_phase("mnist-worker-0", "Failed", 1);
  }
  world.settle();
  EXPECT_EQ(world.restarts(), 2) << "the third replacement is not made";
  EXPECT_EQ(world.conditions(), "Created !Restarting Failed");
}

TEST(BackoffLimit, CountsPodsThatSomebodyDeleted) {
  World world(tensorflow(), tfjob().role("Worker", 1, "Never").run("backoffLimit", 1).build());
  world.settle();
  world.pods.clear();
  world.settle();
  EXPECT_EQ(world.restarts(), 1);
  EXPECT_EQ(world.pod_names(), "mnist-worker-0");
  world.pods.clear();
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Restarting Failed");
  EXPECT_TRUE(world.pods.empty());
}

TEST(BackoffLimit, CountsRestartsInPlace) {
  World world(pytorch(), torchjob().role("Worker", 1).run("backoffLimit", 3).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  json::set(world.pods["mnist-worker-0"], {"status", "containerStatuses"},
            testing::must_parse(R"([{"name":"pytorch","restartCount":3}])"));
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Failed");
}

TEST(Deadline, EndsAJobWhosePodsAreIdle) {
  World world(pytorch(), torchjob()
                             .role("Worker", 2)
                             .run("activeDeadlineSeconds", 60)
                             .run("cleanPodPolicy", "Running")
                             .build());
  world.settle();
  EXPECT_EQ(world.plan().requeue_after, seconds{60}) << "a timer of its own, no event needed";
  world.now += seconds{59};
  EXPECT_EQ(world.settle(), 0);
  world.now += seconds{1};
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Failed");
  EXPECT_TRUE(world.pods.empty());
  EXPECT_TRUE(world.services.empty());
}

TEST(Deadline, BeginsAnewWhenAJobIsResumed) {
  World world(pytorch(), torchjob().role("Worker", 1).run("activeDeadlineSeconds", 60).build());
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  world.now += seconds{600};
  EXPECT_EQ(world.settle(), 0) << "a suspended job does not age";
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Suspended");
  EXPECT_EQ(world.plan().requeue_after, seconds{60});
}

TEST(Success, IsRememberedWhenThePodIsGone) {
  World world(tensorflow(), tfjob().role("Worker", 2).spec("successPolicy", "AllWorkers").build());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Succeeded");
  world.settle();
  world.pods.erase("mnist-worker-1");
  EXPECT_EQ(world.settle(), 0) << "a replica that is done never runs again";
  EXPECT_EQ(world.count("Worker", "succeeded"), 1);
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Running Succeeded");
}

TEST(Success, WinsOverAFailureSeenAtTheSameTime) {
  World world(tensorflow(), tfjob().role("Chief", 1).role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-chief-0", "Succeeded");
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Succeeded");
}

TEST(End, IsFinal) {
  World world(tensorflow(), tfjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  world.set_phase("mnist-worker-0", "Running");
  world.settle();
  world.pods.clear();
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Failed");
  EXPECT_TRUE(world.pods.empty());
}

struct CleanCase {
  const char* policy;
  const char* pods;
  std::size_t services;
};

class CleanUp : public ::testing::TestWithParam<CleanCase> {};

TEST_P(CleanUp, AfterTheEnd) {
  World world(tensorflow(),
              tfjob().role("Worker", 3).run("cleanPodPolicy", GetParam().policy).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.set_phase("mnist-worker-1", "Running");
  world.settle();
  EXPECT_EQ(world.pod_names(), GetParam().pods) << GetParam().policy;
  EXPECT_EQ(world.services.size(), GetParam().services) << GetParam().policy;
  EXPECT_EQ(world.conditions(), "Created Succeeded");
}

INSTANTIATE_TEST_SUITE_P(
    All, CleanUp,
    ::testing::Values(CleanCase{"None", "mnist-worker-0 mnist-worker-1 mnist-worker-2", 3},
                      CleanCase{"Running", "mnist-worker-0", 1}, CleanCase{"All", "", 0}));

TEST(CleanUp, WaitsUntilTheEndIsWrittenDown) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("cleanPodPolicy", "All").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  const control::Plan plan = world.plan();
  EXPECT_TRUE(plan.status.has_value());
  EXPECT_TRUE(plan.writes.empty()) << "a crash must not lose the only witness of the success";
}

TEST(CleanUp, OfAFailedJobIsFollowedInItsStatus) {
  World world(tensorflow(), tfjob().role("Worker", 2).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.set_phase("mnist-worker-1", "Running");
  world.settle();
  EXPECT_EQ(world.count("Worker", "active"), 1);
  world.set_phase("mnist-worker-1", "Succeeded");
  world.settle();
  EXPECT_EQ(world.count("Worker", "active"), 0);
}

TEST(Ttl, DeletesTheJobWhenItIsTime) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("ttlSecondsAfterFinished", 5).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_FALSE(world.deleted);
  EXPECT_EQ(world.plan().requeue_after, seconds{5});
  EXPECT_EQ(world.told("SuccessfulDeleteJob"), 0);
  world.now += seconds{5};
  world.settle();
  EXPECT_TRUE(world.deleted);
  EXPECT_EQ(world.told("SuccessfulDeleteJob"), 1);
  EXPECT_EQ(world.notes.back().message, "Deleted job: mnist");
}

TEST(Ttl, MendsALostCompletionTime) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("ttlSecondsAfterFinished", 5).build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  world.root.at("status").as_object().erase("completionTime");
  world.settle();
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), "2026-11-15T12:00:00Z");
}

TEST(Suspend, TakesPodsAwayAndResumeBringsThemBack) {
  World world(pytorch(), torchjob().role("Master", 1).role("Worker", 1).build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  EXPECT_TRUE(world.pods.empty());
  EXPECT_TRUE(world.services.empty());
  EXPECT_EQ(world.conditions(), "Created !Running Suspended");
  EXPECT_EQ(world.count("Master", "active"), 0);
  EXPECT_EQ(world.told("PyTorchJobSuspended"), 1);
  world.now += seconds{30};
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_EQ(world.pods.size(), 2u);
  EXPECT_EQ(world.restarts(), 0) << "a suspension is no failure";
  EXPECT_EQ(world.conditions(), "Created !Running !Suspended");
  EXPECT_EQ(json::get_string(world.root, {"status", "startTime"}), "2026-11-15T12:00:30Z");
  world.all_phases("Running");
  world.settle();
  EXPECT_EQ(world.conditions(), "Created !Suspended Running");
}

TEST(Suspend, OfAJobThatNeverRan) {
  World world(pytorch(), torchjob().role("Worker", 1).run("suspend", true).build());
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Suspended");
  EXPECT_TRUE(world.pods.empty());
  EXPECT_EQ(json::find(world.root, {"status", "startTime"}), nullptr);
  EXPECT_NE(json::find(world.root, {"status", "replicaStatuses"}), nullptr);
}

TEST(Suspend, WaitsForPodsThatStillEnd) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.graceful = true;
  world.settle();
  world.all_phases("Running");
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, true);
  world.settle();
  json::set(world.root, {"spec", "runPolicy", "suspend"}, false);
  world.settle();
  EXPECT_TRUE(api::deleting(world.pods["mnist-worker-0"]));
  world.pods.clear();
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-worker-0");
  EXPECT_EQ(world.restarts(), 0);
}

TEST(Scale, FollowsTheReplicaCount) {
  World world(pytorch(), torchjob().role("Worker", 4).build());
  world.settle();
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 2);
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-worker-0 mnist-worker-1");
  EXPECT_EQ(world.services.size(), 2u);
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 4);
  world.settle();
  EXPECT_EQ(world.pods.size(), 4u);
  EXPECT_EQ(world.restarts(), 0) << "neither way is a failure";
}

TEST(Duplicate, IsRepairedByUid) {
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  json::value twin = world.pods["mnist-worker-0"];
  json::set(twin, {"metadata", "name"}, "twin");
  json::set(twin, {"metadata", "uid"}, "twin");
  json::set(twin, {"metadata", "creationTimestamp"}, "2026-11-15T13:00:00Z");
  world.pods["twin"] = twin;
  world.settle();
  EXPECT_EQ(world.pod_names(), "mnist-worker-0");
}

TEST(Disruption, IsNoFailureEvenUnderNever) {
  World world(tensorflow(), tfjob().role("Worker", 2, "Never").build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  json::set(world.pods["mnist-worker-1"], {"metadata", "deletionTimestamp"},
            "2026-11-15T12:00:00Z");
  world.set_phase("mnist-worker-1", "Failed", 143);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  world.pods.erase("mnist-worker-1");
  world.settle();
  EXPECT_EQ(world.restarts(), 1);
  EXPECT_EQ(world.pods.size(), 2u);
}

TEST(Disruption, ThatEndedAPodIsNoFailureEvenUnderNever) {
  World world(tensorflow(), tfjob().role("Worker", 2, "Never").build());
  world.settle();
  world.all_phases("Running");
  world.settle();
  world.set_phase("mnist-worker-1", "Failed", 143);
  json::set(world.pods["mnist-worker-1"], {"status", "conditions"},
            testing::must_parse(R"([{"type":"DisruptionTarget","status":"True"}])"));
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  EXPECT_EQ(world.restarts(), 1);
}

TEST(DynamicWorker, MayFailWithoutHarm) {
  World world(tensorflow(), tfjob().role("Worker", 2).spec("enableDynamicWorker", true).build());
  world.settle();
  world.all_phases("Running");
  world.set_phase("mnist-worker-1", "Failed", 1);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Running");
  EXPECT_EQ(world.count("Worker", "failed"), 1);
  EXPECT_EQ(world.told("ExitedWithCode"), 1);
}

TEST(BigJob, IsMadeInPortions) {
  World world(pytorch(), torchjob().role("Worker", 2'500).build());
  const control::Plan first = world.plan();
  EXPECT_EQ(first.writes.size(), 2 * kPodsPerPlan);
  EXPECT_EQ(first.requeue_after, Duration::zero());
  EXPECT_EQ(world.settle(), 3);
  EXPECT_EQ(world.pods.size(), 2'500u);
  EXPECT_EQ(world.services.size(), 2'500u);
  EXPECT_EQ(world.restarts(), 0);
  EXPECT_LT(world.notes.size(), 10u);
}

// Cut after every step of every plan of a job's life, the end is the same.
TEST(Crash, AtAnyStepChangesNothingInTheEnd) {
  for (std::size_t cut = 0; cut < 30; ++cut) {
    World world(tensorflow(), tfjob()
                                  .role("Worker", 2, "OnFailure")
                                  .run("backoffLimit", 3)
                                  .run("cleanPodPolicy", "All")
                                  .build());
    std::size_t done = 0;
    const auto settle_with_a_crash = [&] {
      const control::Plan plan = world.plan();
      const std::size_t steps = plan.writes.size() + plan.status.has_value();
      if (cut >= done && cut < done + steps) world.apply(plan, cut - done);
      done += steps;
      world.settle();
    };
    settle_with_a_crash();
    world.all_phases("Running");
    settle_with_a_crash();
    world.set_phase("mnist-worker-0", "Failed", 1);
    world.set_phase("mnist-worker-1", "Failed", 1);
    settle_with_a_crash();
    EXPECT_EQ(world.restarts(), 2) << "cut after step " << cut;
    world.all_phases("Running");
    settle_with_a_crash();
    world.set_phase("mnist-worker-0", "Succeeded");
    settle_with_a_crash();
    EXPECT_EQ(world.conditions(), "Created !Running Succeeded") << "cut after step " << cut;
    EXPECT_TRUE(world.pods.empty()) << "cut after step " << cut;
    EXPECT_EQ(world.restarts(), 2) << "cut after step " << cut;
  }
}

}  // namespace
}  // namespace skiff::training
