#include "features/training/engine/abnormal_pods.h"

#include <gtest/gtest.h>

#include "features/training/engine/notes.h"
#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using control::Note;
using testing::torchjob;
using testing::World;

struct AbnormalCase {
  const char* sentence;
  const char* phase;
  const char* status;  // members of the pod's status besides its phase
  const char* reason;  // empty: nothing is told
  const char* message;
};

class Abnormal : public ::testing::TestWithParam<AbnormalCase> {};

TEST_P(Abnormal, PodIsToldOnTheJob) {
  const AbnormalCase& c = GetParam();
  World world(pytorch(), torchjob().role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-worker-0", c.phase);
  const json::value status = testing::must_parse(c.status);
  for (const auto& [key, value] : status.as_object()) {
    json::set(world.pods["mnist-worker-0"], {"status", key}, value);
  }
  world.settle();
  const control::Plan plan = world.plan();
  EXPECT_TRUE(plan.empty()) << c.sentence;
  if (*c.reason == '\0') {
    EXPECT_TRUE(plan.notes.empty()) << c.sentence;
    return;
  }
  EXPECT_EQ(plan.notes,
            (std::vector<Note>{{.warning = true, .reason = c.reason, .message = c.message}}))
      << c.sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, Abnormal,
    ::testing::Values(
        AbnormalCase{"an image that cannot be had", "Pending",
                     R"({"containerStatuses":[{"name":"pytorch","state":{"waiting":
                        {"reason":"ErrImagePull","message":"no such image"}}}]})",
                     "ErrImagePull",
                     "Error pod mnist-worker-0 container pytorch waiting message: no such image"},
        AbnormalCase{"a crash loop", "Running",
                     R"({"containerStatuses":[{"name":"pytorch","state":{"waiting":
                        {"reason":"CrashLoopBackOff","message":"back-off 10s"}}}]})",
                     "CrashLoopBackOff",
                     "Error pod mnist-worker-0 container pytorch waiting message: back-off 10s"},
        AbnormalCase{"an end that will be tried again", "Running",
                     R"({"containerStatuses":[{"name":"pytorch","state":{"terminated":
                        {"reason":"OOMKilled","exitCode":137,"message":"too much"}}}]})",
                     "OOMKilled",
                     "Error pod mnist-worker-0 container pytorch exitCode: 137 terminated message: "
                     "too much"},
        AbnormalCase{"an init container is looked at as well", "Pending",
                     R"({"initContainerStatuses":[{"name":"fetch","state":{"terminated":
                        {"exitCode":2}}}]})",
                     "Error",
                     "Error pod mnist-worker-0 container fetch exitCode: 2 terminated message: "},
        AbnormalCase{"a pod without a place says why", "Pending",
                     R"({"conditions":[{"type":"PodScheduled","status":"False",
                        "reason":"Unschedulable","message":"0/1 nodes are available"}]})",
                     "Unschedulable",
                     "Error pod mnist-worker-0 condition message: 0/1 nodes are available"},
        AbnormalCase{"a pod that starts is no trouble", "Pending",
                     R"({"containerStatuses":[{"name":"pytorch","state":{"waiting":
                        {"reason":"ContainerCreating"}}}]})",
                     "", ""},
        AbnormalCase{"a pod that is not ready yet is no trouble", "Running",
                     R"({"conditions":[{"type":"Ready","status":"False"}]})", "", ""},
        AbnormalCase{"a side container that has done its part is no trouble", "Running",
                     R"({"containerStatuses":[{"name":"side","state":{"terminated":
                        {"exitCode":0}}}]})",
                     "", ""}));

TEST(Abnormal, PodsAreToldByAHandful) {
  World world(pytorch(), torchjob().role("Worker", 50).build());
  world.settle();
  for (auto& [name, pod] : world.pods) {
    json::set(pod, {"status", "containerStatuses"},
              testing::must_parse(
                  R"([{"name":"pytorch","state":{"waiting":{"reason":"ErrImagePull"}}}])"));
  }
  EXPECT_EQ(world.plan().notes.size(), kSingleNotes);
}

TEST(Abnormal, PodsAreNotToldWhileSomethingElseIsDone) {
  World world(pytorch(), torchjob().role("Worker", 2).build());
  world.settle();
  json::set(
      world.pods["mnist-worker-0"], {"status", "containerStatuses"},
      testing::must_parse(R"([{"name":"pytorch","state":{"waiting":{"reason":"ErrImagePull"}}}])"));
  world.set_phase("mnist-worker-1", "Running");
  const control::Plan busy = world.plan();
  EXPECT_FALSE(busy.empty());
  for (const Note& note : busy.notes) EXPECT_NE(note.reason, "ErrImagePull");
  world.settle();
  EXPECT_EQ(world.plan().notes.size(), 1u) << "the plan that follows tells it";
}

TEST(Abnormal, PodOfAFinishedJobIsNotTold) {
  World world(pytorch(), torchjob().role("Master", 1).role("Worker", 1).build());
  world.settle();
  world.set_phase("mnist-master-0", "Succeeded");
  json::set(
      world.pods["mnist-worker-0"], {"status", "containerStatuses"},
      testing::must_parse(R"([{"name":"pytorch","state":{"waiting":{"reason":"ErrImagePull"}}}])"));
  world.settle();
  EXPECT_TRUE(world.plan().notes.empty());
}

}  // namespace
}  // namespace skiff::training
