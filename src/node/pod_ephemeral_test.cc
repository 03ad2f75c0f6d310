// Containers that are put into a running pod to look at it, as the plan has them.
#include <gtest/gtest.h>

#include <csignal>

#include "node/pod_plan.h"
#include "node/testing/records.h"

namespace skiff::node {
namespace {

using testing::exited;
using testing::kNow;
using testing::running;

using std::chrono::seconds;
using Signals = std::vector<PodActions::Signal>;
using Starts = std::vector<PodActions::Start>;

PodView ephemeral_view(std::vector<ContainerRecord> records, const std::string& metadata = "",
                       const std::string& policy = "Never") {
  const auto pod = json::parse(
      R"({"metadata":{"name":"p","namespace":"ns","uid":"u1")" + metadata +
      R"(},"spec":{"restartPolicy":")" + policy +
      R"(","terminationGracePeriodSeconds":30,"containers":[{"name":"main","image":"i"}],
          "ephemeralContainers":[{"name":"debug","image":"tools","targetContainerName":"main"}]},
          "status":{"startTime":"2026-01-02T03:00:00Z"}})");
  EXPECT_TRUE(pod);
  return {.pod = std::make_shared<const json::value>(*pod),
          .sandbox = SandboxRecord{
              .pod_uid = "u1", .ip = "10.0.0.9", .alive = true, .containers = std::move(records)}};
}

const json::value& debug_status(const PodActions& actions) {
  return json::get_array(*actions.status, {"ephemeralContainerStatuses"}).at(0);
}

std::string ephemeral_phase(const PodActions& actions) {
  return std::string(json::get_string(*actions.status, {"phase"}));
}

TEST(EphemeralContainer, StartsInAPodThatRuns) {
  const PodActions actions = plan_pod(ephemeral_view({running("main")}), kNow);
  EXPECT_EQ(actions.start, (Starts{{"debug", 0}}));
  EXPECT_EQ(json::get_string(debug_status(actions), {"state", "waiting", "reason"}),
            "ContainerCreating");
  EXPECT_EQ(ephemeral_phase(actions), "Running");
}

TEST(EphemeralContainer, WaitsForTheSandbox) {
  PodView none = ephemeral_view({});
  none.sandbox.reset();
  const PodActions actions = plan_pod(none, kNow);
  EXPECT_TRUE(actions.start_sandbox);
  EXPECT_TRUE(actions.start.empty());
}

TEST(EphemeralContainer, IsToldAsRunningAndNeverAsReady) {
  const PodActions actions = plan_pod(ephemeral_view({running("main"), running("debug")}), kNow);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_NE(json::find(debug_status(actions), {"state", "running"}), nullptr);
  EXPECT_EQ(json::get_bool(debug_status(actions), {"ready"}), false);
  EXPECT_EQ(json::get_array(*actions.status, {"containerStatuses"}).size(), 1u);
}

TEST(EphemeralContainer, ThatEndedIsNotStartedAgainWhateverThePolicy) {
  const PodActions actions =
      plan_pod(ephemeral_view({running("main"), exited("debug", 1)}, "", "Always"), kNow);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(json::get_int(debug_status(actions), {"state", "terminated", "exitCode"}), 1);
  EXPECT_EQ(ephemeral_phase(actions), "Running");
}

TEST(EphemeralContainer, DoesNotKeepAPodThatIsOver) {
  const PodActions ending = plan_pod(ephemeral_view({exited("main", 0), running("debug")}), kNow);
  EXPECT_EQ(ending.signals, (Signals{{"debug", SIGTERM}}));
  EXPECT_EQ(ephemeral_phase(ending), "Running") << "a pod that is over has nothing left running";
  const PodActions over = plan_pod(ephemeral_view({exited("main", 0), exited("debug", 143)}), kNow);
  EXPECT_TRUE(over.stop_sandbox);
  EXPECT_EQ(ephemeral_phase(over), "Succeeded") << "its own end counts for nothing";
}

TEST(EphemeralContainer, EndsWithADeletedPod) {
  const PodActions actions = plan_pod(
      ephemeral_view(
          {running("main"), running("debug")},
          R"(,"deletionTimestamp":"2026-01-02T03:04:35Z","deletionGracePeriodSeconds":30)"),
      kNow);
  EXPECT_EQ(actions.signals, (Signals{{"debug", SIGTERM}, {"main", SIGTERM}}));
}

TEST(EphemeralContainer, IsNotStartedInAPodThatEnds) {
  const PodActions actions = plan_pod(
      ephemeral_view(
          {running("main")},
          R"(,"deletionTimestamp":"2026-01-02T03:04:35Z","deletionGracePeriodSeconds":30)"),
      kNow);
  EXPECT_TRUE(actions.start.empty());
}

TEST(EphemeralContainer, AnObstacleIsShownAndTriedAgain) {
  PodView blocked = ephemeral_view({running("main")});
  blocked.obstacles["debug"] = {.reason = "ErrImagePull",
                                .message = "no such image",
                                .since = kNow,
                                .retry_at = kNow + seconds(20)};
  const PodActions waits = plan_pod(blocked, kNow);
  EXPECT_TRUE(waits.start.empty());
  EXPECT_EQ(json::get_string(debug_status(waits), {"state", "waiting", "reason"}), "ErrImagePull");
  EXPECT_EQ(plan_pod(blocked, kNow + seconds(21)).start, (Starts{{"debug", 0}}));
}

TEST(EphemeralContainer, IsFoundByItsName) {
  const PodView pod = ephemeral_view({});
  ASSERT_NE(find_container(*pod.pod, "debug"), nullptr);
  EXPECT_EQ(json::get_string(*find_container(*pod.pod, "debug"), {"image"}), "tools");
}

TEST(EphemeralContainer, APodThatRanIsNotPendingWhileItEndsForAReason) {
  PodView evicted = ephemeral_view({exited("main", 143), running("debug")});
  evicted.eviction = "the node is low on memory";
  EXPECT_EQ(ephemeral_phase(plan_pod(evicted, kNow)), "Running");
  evicted.sandbox->containers = {exited("main", 143), exited("debug", 143)};
  EXPECT_EQ(ephemeral_phase(plan_pod(evicted, kNow)), "Failed");
}

}  // namespace
}  // namespace skiff::node
