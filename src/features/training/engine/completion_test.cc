#include "features/training/engine/completion.h"

#include <gtest/gtest.h>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using std::chrono::seconds;
using testing::tfjob;
using testing::torchjob;
using testing::World;

struct CompletionEndCase {
  const char* sentence;
  bool succeeds;
  const char* policy;
  const char* pods;        // after the end
  std::size_t services;    // after the end
  std::int64_t active;     // of the workers
  std::int64_t succeeded;  // of the workers
};

class CompletionEnd : public ::testing::TestWithParam<CompletionEndCase> {};

// A chief that ends, one worker that runs and one that waits.
TEST_P(CompletionEnd, IsWrittenDownAndCleanedUp) {
  const CompletionEndCase& c = GetParam();
  World world(tensorflow(), tfjob()
                                .role("Chief", 1, "Never")
                                .role("Worker", 2, "Never")
                                .run("cleanPodPolicy", c.policy)
                                .build());
  world.settle();
  world.set_phase("mnist-chief-0", "Running");
  world.set_phase("mnist-worker-0", "Running");
  world.settle();
  world.now += seconds{7};
  world.set_phase("mnist-chief-0", c.succeeds ? "Succeeded" : "Failed", c.succeeds ? 0 : 1);
  world.settle();
  EXPECT_EQ(world.conditions(),
            c.succeeds ? "Created !Running Succeeded" : "Created !Running Failed")
      << c.sentence;
  EXPECT_EQ(json::get_string(world.root, {"status", "completionTime"}), "2026-11-15T12:00:07Z")
      << c.sentence;
  EXPECT_EQ(world.pod_names(), c.pods) << c.sentence;
  EXPECT_EQ(world.services.size(), c.services) << c.sentence;
  EXPECT_EQ(world.count("Worker", "active"), c.active) << c.sentence;
  EXPECT_EQ(world.count("Worker", "succeeded"), c.succeeded) << c.sentence;
  EXPECT_EQ(world.told(c.succeeds ? "TFJobSucceeded" : "TFJobFailed"), 1) << c.sentence;
  world.now += seconds{60};
  EXPECT_EQ(world.settle(), 0) << c.sentence << ": nothing is left to do";
}

INSTANTIATE_TEST_SUITE_P(
    All, CompletionEnd,
    ::testing::Values(
        CompletionEndCase{"a success under None keeps all", true, "None",
                          "mnist-chief-0 mnist-worker-0 mnist-worker-1", 3, 0, 1},
        CompletionEndCase{"a success under Running keeps what has ended", true, "Running",
                          "mnist-chief-0", 1, 0, 1},
        CompletionEndCase{"a success under All keeps nothing", true, "All", "", 0, 0, 1},
        CompletionEndCase{"a failure under None keeps all", false, "None",
                          "mnist-chief-0 mnist-worker-0 mnist-worker-1", 3, 1, 0},
        CompletionEndCase{"a failure under Running keeps what has ended", false, "Running",
                          "mnist-chief-0", 1, 0, 0},
        CompletionEndCase{"a failure under All keeps nothing", false, "All", "", 0, 0, 0}));

TEST(CompletionEnd, CleansUpWhatBelongsToNoReplica) {
  World world(tensorflow(), tfjob().role("Worker", 2).run("cleanPodPolicy", "All").build());
  world.settle();
  json::set(world.root, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, 1);
  world.set_phase("mnist-worker-0", "Succeeded");
  world.settle();
  EXPECT_TRUE(world.pods.empty());
  EXPECT_TRUE(world.services.empty());
}

TEST(CompletionEnd, DeletesServicesWhosePodsAreGoneAlready) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("cleanPodPolicy", "All").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Succeeded");
  ASSERT_TRUE(world.apply(world.plan()));
  world.pods.clear();
  world.settle();
  EXPECT_TRUE(world.services.empty());
}

TEST(CompletionEnd, IsNotBroughtBackByAChangedSpec) {
  World world(pytorch(), torchjob().role("Worker", 1, "Never").build());
  world.settle();
  world.set_phase("mnist-worker-0", "Failed", 1);
  world.settle();
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "restartPolicy"}, "OnFailure");
  json::set(world.root, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}, 3);
  world.settle();
  EXPECT_EQ(world.conditions(), "Created Failed");
  EXPECT_EQ(world.pods.size(), 1u);
}

struct TtlCase {
  const char* sentence;
  std::int64_t ttl;
  std::int64_t wait;
  bool deleted;
};

class TtlAfter : public ::testing::TestWithParam<TtlCase> {};

TEST_P(TtlAfter, TheEnd) {
  const TtlCase& c = GetParam();
  for (const bool succeeds : {true, false}) {
    World world(tensorflow(),
                tfjob().role("Worker", 1, "Never").run("ttlSecondsAfterFinished", c.ttl).build());
    world.settle();
    world.now += seconds{1000};
    world.set_phase("mnist-worker-0", succeeds ? "Succeeded" : "Failed", succeeds ? 0 : 1);
    world.apply(world.plan());
    EXPECT_FALSE(world.deleted) << c.sentence << ": the end is written down first";
    world.now += seconds{c.wait};
    world.settle();
    EXPECT_EQ(world.deleted, c.deleted) << c.sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TtlAfter,
                         ::testing::Values(TtlCase{"a TTL of none deletes at once", 0, 0, true},
                                           TtlCase{"a second early is too early", 60, 59, false},
                                           TtlCase{"on time", 60, 60, true},
                                           TtlCase{"late is as good", 60, 6000, true}));

TEST(Ttl, IsNotCountedBeforeTheEnd) {
  World world(tensorflow(), tfjob().role("Worker", 1).run("ttlSecondsAfterFinished", 0).build());
  world.settle();
  world.now += seconds{3600};
  world.settle();
  EXPECT_FALSE(world.deleted);
}

}  // namespace
}  // namespace skiff::training
