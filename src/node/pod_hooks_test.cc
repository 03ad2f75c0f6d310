// Lifecycle hooks and the order in which containers end, as the plan has them.
#include <gtest/gtest.h>

#include <csignal>

#include "api/meta.h"
#include "node/pod_plan.h"
#include "node/testing/records.h"

namespace skiff::node {
namespace {

using testing::exited;
using testing::kDeleting;
using testing::kNow;
using testing::running;

using std::chrono::seconds;
using Signals = std::vector<PodActions::Signal>;
using Hooks = std::vector<PodActions::Hook>;
using Starts = std::vector<PodActions::Start>;

constexpr const char* kPostStart = R"("lifecycle":{"postStart":{"exec":{"command":["x"]}}})";
constexpr const char* kPreStop = R"("lifecycle":{"preStop":{"exec":{"command":["x"]}}})";
constexpr const char* kSidecar = R"("restartPolicy":"Always")";

struct Named {
  const char* name;
  const char* more = nullptr;  // "a":1
};

struct Story {
  std::vector<Named> mains = {{"main"}};
  std::vector<Named> inits = {};
  std::string policy = "Always";
  std::string metadata = {};
  std::string status = "{}";

  static std::string list(const std::vector<Named>& containers) {
    std::string out;
    for (const Named& c : containers) {
      out += std::string(out.empty() ? "" : ",") + R"({"name":")" + c.name + R"(","image":"i")" +
             (c.more == nullptr ? "" : std::string(",") + c.more) + "}";
    }
    return "[" + out + "]";
  }

  PodView view(std::vector<ContainerRecord> records) const {
    const auto pod =
        json::parse(R"({"metadata":{"name":"p","namespace":"ns","uid":"u1")" + metadata +
                    R"(},"spec":{"restartPolicy":")" + policy + R"(","containers":)" + list(mains) +
                    R"(,"initContainers":)" + list(inits) + R"(},"status":)" + status + "}");
    EXPECT_TRUE(pod);
    return {
        .pod = std::make_shared<const json::value>(*pod),
        .sandbox = SandboxRecord{
            .pod_uid = "u1", .ip = "10.0.0.9", .alive = true, .containers = std::move(records)}};
  }
};

// The plan of `at`, which remembers it.
PodActions step(PodView& at, Time now) {
  PodActions actions = plan_pod(at, now);
  at.memory = actions.memory;
  if (actions.status) {
    json::value pod = *at.pod;
    pod.as_object()["status"] = *actions.status;
    at.pod = std::make_shared<const json::value>(std::move(pod));
  }
  return actions;
}

void set_hook(PodView& at, std::string name, HookKind kind, std::optional<bool> well,
              int attempt = 0) {
  at.hooks[{std::move(name), kind}] = {.attempt = attempt, .ended_well = well};
}

const json::value& main_status(const PodView& at) {
  return json::get_array(*at.pod, {"status", "containerStatuses"})[0];
}

std::string state(const PodView& at) {
  const json::value& status = main_status(at);
  if (json::find(status, {"state", "running"}) != nullptr) return "running";
  return std::string(json::get_string(status, {"state", "waiting", "reason"}, "terminated"));
}

TEST(PostStart, ThePodWaitsForItAndThenCountsAsRunning) {
  PodView at = Story{.mains = {{"main", kPostStart}}}.view({running("main")});
  EXPECT_EQ(step(at, kNow).hooks, (Hooks{{"main", 0, HookKind::kPostStart}}));
  EXPECT_EQ(state(at), "ContainerCreating");
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Pending");
  EXPECT_EQ(json::get_bool(main_status(at), {"started"}), false);
  EXPECT_EQ(json::get_bool(main_status(at), {"ready"}), false);

  set_hook(at, "main", HookKind::kPostStart, std::nullopt);
  EXPECT_TRUE(step(at, kNow + seconds(1)).hooks.empty()) << "it is under way";
  EXPECT_EQ(state(at), "ContainerCreating");

  set_hook(at, "main", HookKind::kPostStart, true);
  EXPECT_TRUE(step(at, kNow + seconds(2)).hooks.empty());
  EXPECT_EQ(state(at), "running");
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Running");
  EXPECT_EQ(json::get_bool(main_status(at), {"ready"}), true);
}

TEST(PostStart, IsNotRunAgainForARunThatWasToldAsRunning) {
  PodView at = Story{.mains = {{"main", kPostStart}}}.view({running("main")});
  set_hook(at, "main", HookKind::kPostStart, true);
  step(at, kNow);
  at.hooks.clear();  // a new Skiff remembers nothing
  at.memory = {};
  EXPECT_TRUE(step(at, kNow + seconds(60)).hooks.empty());
  EXPECT_EQ(state(at), "running");
}

TEST(PostStart, EveryRunHasItsOwn) {
  PodView at = Story{.mains = {{"main", kPostStart}}}.view({running("main")});
  set_hook(at, "main", HookKind::kPostStart, true);
  step(at, kNow);
  at.sandbox->containers = {running("main", 1)};
  EXPECT_EQ(step(at, kNow + seconds(1)).hooks, (Hooks{{"main", 1, HookKind::kPostStart}}));
  EXPECT_EQ(state(at), "ContainerCreating");
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Running")
      << "a pod that ran is not pending because a container starts again";
}

TEST(PostStart, ItsFailureKillsTheContainerAndThePolicyDecides) {
  PodView at = Story{.mains = {{"main", kPostStart}}}.view({running("main")});
  step(at, kNow);
  set_hook(at, "main", HookKind::kPostStart, false);
  auto actions = step(at, kNow + seconds(1));
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
  EXPECT_EQ(actions.notes,
            (std::vector<PodNote>{{false, "Killing", "FailedPostStartHook", "main"}}));
  EXPECT_EQ(state(at), "ContainerCreating");
  actions = step(at, kNow + seconds(31));
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGKILL}}));
  at.sandbox->containers = {exited("main", 137)};
  EXPECT_EQ(step(at, kNow + seconds(32)).start, (Starts{{"main", 1}}));
}

TEST(PostStart, ItsFailureFailsAPodThatMayNotRestart) {
  PodView at = Story{.mains = {{"main", kPostStart}}, .policy = "Never"}.view({running("main")});
  set_hook(at, "main", HookKind::kPostStart, false);
  step(at, kNow);
  at.sandbox->containers = {exited("main", 143)};
  step(at, kNow + seconds(1));
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Failed");
}

TEST(PostStart, TheContainersAfterItStartWhenItHasEnded) {
  PodView at = Story{.mains = {{"main", kPostStart}, {"other"}}}.view({});
  EXPECT_EQ(step(at, kNow).start, (Starts{{"main", 0}}));
  at.sandbox->containers = {running("main")};
  EXPECT_TRUE(step(at, kNow).start.empty());
  set_hook(at, "main", HookKind::kPostStart, std::nullopt);
  EXPECT_TRUE(step(at, kNow).start.empty());
  set_hook(at, "main", HookKind::kPostStart, false);
  EXPECT_EQ(step(at, kNow).start, (Starts{{"other", 0}})) << "well or not";
  set_hook(at, "main", HookKind::kPostStart, true);
  EXPECT_EQ(step(at, kNow).start, (Starts{{"other", 0}}));
}

TEST(PostStart, OfASidecarHoldsBackTheContainersAfterIt) {
  const std::string both = std::string(kSidecar) + "," + kPostStart;
  PodView at = Story{.inits = {{"side", both.c_str()}}}.view({running("side")});
  auto actions = step(at, kNow);
  EXPECT_EQ(actions.hooks, (Hooks{{"side", 0, HookKind::kPostStart}}));
  EXPECT_TRUE(actions.start.empty());
  set_hook(at, "side", HookKind::kPostStart, true);
  EXPECT_EQ(step(at, kNow).start, (Starts{{"main", 0}}));
}

TEST(PostStart, IsNotBegunInAPodThatEnds) {
  PodView at =
      Story{.mains = {{"main", kPostStart}}, .metadata = kDeleting}.view({running("main")});
  const auto actions = step(at, kNow);
  EXPECT_TRUE(actions.hooks.empty());
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
}

TEST(PreStop, ComesBeforeTheSignalAndCountsAgainstTheGrace) {
  PodView at = Story{.mains = {{"main", kPreStop}}, .metadata = kDeleting}.view({running("main")});
  auto actions = step(at, kNow);
  EXPECT_EQ(actions.hooks, (Hooks{{"main", 0, HookKind::kPreStop}}));
  EXPECT_TRUE(actions.signals.empty());
  ASSERT_EQ(actions.notes.size(), 1U);
  EXPECT_EQ(actions.notes[0].message, "Stopping container main");
  EXPECT_EQ(actions.wake_after, Duration(seconds(30)));

  set_hook(at, "main", HookKind::kPreStop, std::nullopt);
  actions = step(at, kNow + seconds(10));
  EXPECT_TRUE(actions.hooks.empty() && actions.signals.empty() && actions.notes.empty());

  set_hook(at, "main", HookKind::kPreStop, true);
  actions = step(at, kNow + seconds(20));
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
  EXPECT_EQ(actions.wake_after, Duration(seconds(10))) << "what the hook left of the grace";
  EXPECT_TRUE(step(at, kNow + seconds(29)).signals.empty());
  EXPECT_EQ(step(at, kNow + seconds(30)).signals, (Signals{{"main", SIGKILL}}));
}

TEST(PreStop, ItsFailureIsFollowedByTheSignal) {
  PodView at = Story{.mains = {{"main", kPreStop}}, .metadata = kDeleting}.view({running("main")});
  step(at, kNow);
  set_hook(at, "main", HookKind::kPreStop, false);
  EXPECT_EQ(step(at, kNow + seconds(1)).signals, (Signals{{"main", SIGTERM}}));
}

TEST(PreStop, ThatTakesTooLongLeavesTheContainerTwoSeconds) {
  PodView at = Story{.mains = {{"main", kPreStop}}, .metadata = kDeleting}.view({running("main")});
  step(at, kNow);
  set_hook(at, "main", HookKind::kPreStop, std::nullopt);
  EXPECT_TRUE(step(at, kNow + seconds(29)).signals.empty());
  EXPECT_EQ(step(at, kNow + seconds(30)).signals, (Signals{{"main", SIGTERM}}));
  EXPECT_TRUE(step(at, kNow + seconds(31)).signals.empty());
  EXPECT_EQ(step(at, kNow + seconds(32)).signals, (Signals{{"main", SIGKILL}}));
}

TEST(PreStop, IsSkippedWhereThereIsNoGrace) {
  PodView at = Story{.mains = {{"main", kPreStop}},
                     .metadata = R"(,"deletionTimestamp":"2026-01-02T03:04:35Z",
                                     "deletionGracePeriodSeconds":0)"}
                   .view({running("main")});
  const auto actions = step(at, kNow);
  EXPECT_TRUE(actions.hooks.empty());
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
}

TEST(PreStop, IsRunBeforeARestartByAProbe) {
  PodView at = Story{.mains = {{"main", kPreStop}}}.view({running("main")});
  at.health["main"] = {.attempt = 0, .failed = ProbeKind::kLiveness};
  auto actions = step(at, kNow);
  EXPECT_EQ(actions.hooks, (Hooks{{"main", 0, HookKind::kPreStop}}));
  EXPECT_TRUE(actions.signals.empty());
  set_hook(at, "main", HookKind::kPreStop, true);
  EXPECT_EQ(step(at, kNow + seconds(1)).signals, (Signals{{"main", SIGTERM}}));
}

TEST(PreStop, OfOneContainerDoesNotHoldBackTheSignalOfAnother) {
  PodView at = Story{.mains = {{"main", kPreStop}, {"other"}}, .metadata = kDeleting}.view(
      {running("main"), running("other")});
  EXPECT_EQ(step(at, kNow).signals, (Signals{{"other", SIGTERM}}));
}

const Story kTwoSidecars{
    .inits = {{"first", kSidecar}, {"second", kSidecar}}, .policy = "Never", .metadata = kDeleting};

TEST(Sidecars, EndAfterTheOthersInReverseOrder) {
  PodView at = kTwoSidecars.view({running("first"), running("second"), running("main")});
  auto actions = step(at, kNow);
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
  EXPECT_EQ(actions.notes.size(), 3U) << "all are told that they are to end";
  at.sandbox->containers = {running("first"), running("second"), exited("main")};
  EXPECT_EQ(step(at, kNow + seconds(3)).signals, (Signals{{"second", SIGTERM}}));
  EXPECT_TRUE(step(at, kNow + seconds(4)).signals.empty());
  at.sandbox->containers = {running("first"), exited("second"), exited("main")};
  EXPECT_EQ(step(at, kNow + seconds(5)).signals, (Signals{{"first", SIGTERM}}));
  at.sandbox->containers = {exited("first"), exited("second"), exited("main")};
  actions = step(at, kNow + seconds(6));
  EXPECT_TRUE(actions.stop_sandbox);
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Succeeded");
}

TEST(Sidecars, WaitForTheirTurnNoLongerThanTheGrace) {
  PodView at = kTwoSidecars.view({running("first"), running("second"), running("main")});
  step(at, kNow);
  const auto actions = step(at, kNow + seconds(30));
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGKILL}, {"second", SIGTERM}, {"first", SIGTERM}}));
  EXPECT_EQ(step(at, kNow + seconds(32)).signals,
            (Signals{{"main", SIGKILL}, {"second", SIGKILL}, {"first", SIGKILL}}));
}

TEST(Sidecars, RunTheirHooksAtOnceAndWaitForTheirTurnAfter) {
  const std::string both = std::string(kSidecar) + "," + kPreStop;
  PodView at = Story{.inits = {{"side", both.c_str()}}, .metadata = kDeleting}.view(
      {running("side"), running("main")});
  auto actions = step(at, kNow);
  EXPECT_EQ(actions.hooks, (Hooks{{"side", 0, HookKind::kPreStop}}));
  EXPECT_EQ(actions.signals, (Signals{{"main", SIGTERM}}));
  set_hook(at, "side", HookKind::kPreStop, true);
  EXPECT_TRUE(step(at, kNow + seconds(1)).signals.empty()) << "main still runs";
  at.sandbox->containers = {running("side"), exited("main")};
  EXPECT_EQ(step(at, kNow + seconds(2)).signals, (Signals{{"side", SIGTERM}}));
}

TEST(Sidecars, ThatEndedThemselvesAreNotStartedAgainInAPodThatIsOver) {
  Story story = kTwoSidecars;
  story.metadata.clear();
  PodView at = story.view({running("first"), exited("second", 1), exited("main", 3)});
  auto actions = step(at, kNow);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(actions.signals, (Signals{{"first", SIGTERM}}));
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Running")
      << "a pod is over when nothing of it runs";
  at.sandbox->containers = {exited("first", 143), exited("second", 1), exited("main", 3)};
  step(at, kNow + seconds(1));
  EXPECT_EQ(json::get_string(*at.pod, {"status", "phase"}), "Failed");
}

TEST(Sidecars, OneThatEndsWhileTheMainContainerRunsIsStartedAgainWhateverThePolicy) {
  Story story = kTwoSidecars;
  story.metadata.clear();
  PodView at = story.view({running("first"), exited("second"), running("main")});
  EXPECT_EQ(step(at, kNow).start, (Starts{{"second", 1}}));
}

TEST(Sidecars, AnOrdinaryInitContainerWaitsForTheStartupProbeOfTheSidecarBeforeIt) {
  Story story{.inits = {{"side", kSidecar}, {"prepare"}}};
  PodView at = story.view({running("side")});
  at.health["side"] = {.attempt = 0, .started = false, .ready = false};
  EXPECT_TRUE(step(at, kNow).start.empty());
  at.health["side"] = {.attempt = 0};
  EXPECT_EQ(step(at, kNow).start, (Starts{{"prepare", 0}}));
}

}  // namespace
}  // namespace skiff::node
