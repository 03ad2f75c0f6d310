#include "node/pod_plan.h"

#include <gtest/gtest.h>

#include <csignal>

#include "api/meta.h"
#include "node/pod_status.h"
#include "node/testing/parse.h"
#include "node/testing/records.h"

namespace skiff::node {
namespace {

using testing::exited;
using testing::kDeleting;
using testing::kNow;
using testing::running;

using std::chrono::minutes;
using std::chrono::seconds;

// A pod with one container "main" and, where asked, one init container "prepare".
struct PodBuilder {
  std::string policy = "Never";
  bool init = false;
  bool sidecar = false;
  int mains = 1;
  std::string extra_spec = {};      // ,"a":1
  std::string extra_metadata = {};  // ,"a":1
  std::string status = "{}";

  Object build() const {
    std::string containers;
    for (int i = 0; i < mains; ++i) {
      containers += std::string(i ? "," : "") + R"({"name":")" + (i == 0 ? "main" : "other") +
                    R"(","image":"img"})";
    }
    const std::string restart = sidecar ? R"(,"restartPolicy":"Always")" : "";
    const std::string inits =
        init ? R"(,"initContainers":[{"name":"prepare","image":"i")" + restart + "}]" : "";
    return std::make_shared<const json::value>(
        parse(R"({"metadata":{"name":"p","namespace":"ns","uid":"u1")" + extra_metadata +
              R"(},"spec":{"restartPolicy":")" + policy + R"(","containers":[)" + containers + "]" +
              inits + extra_spec + R"(},"status":)" + status + "}"));
  }
};

SandboxRecord sandbox(std::vector<ContainerRecord> containers, bool alive = true) {
  return {.pod_uid = "u1", .ip = "10.0.0.9", .alive = alive, .containers = std::move(containers)};
}

PodView plan_view(const PodBuilder& pod, std::optional<SandboxRecord> record = {}) {
  return {.pod = pod.build(), .sandbox = std::move(record), .host_ip = "10.0.0.1"};
}

std::string planned_phase(const PodActions& actions) {
  return actions.status ? std::string(json::get_string(*actions.status, {"phase"})) : "(same)";
}

const json::value& container_status(const PodActions& actions, std::string_view name) {
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::value& c : json::get_array(*actions.status, {list})) {
      if (json::get_string(c, {"name"}) == name) return c;
    }
  }
  static const json::value kNone;
  ADD_FAILURE() << "no status for " << name;
  return kNone;
}

std::string waiting(const PodActions& actions, std::string_view name = "main") {
  return std::string(
      json::get_string(container_status(actions, name), {"state", "waiting", "reason"}));
}

std::string ended(const PodActions& actions, std::string_view name = "main") {
  return std::string(
      json::get_string(container_status(actions, name), {"state", "terminated", "reason"}));
}

std::string condition(const PodActions& actions, std::string_view type) {
  const json::value wrapped = json::object{{"status", *actions.status}};
  const json::object* found = api::condition(wrapped, type);
  if (found == nullptr) return "absent";
  const json::value value(*found);
  std::string out(json::get_string(value, {"status"}));
  const std::string_view reason = json::get_string(value, {"reason"});
  return reason.empty() ? out : out + " " + std::string(reason);
}

struct PhaseCase {
  std::string_view sentence;
  PodBuilder pod;
  std::vector<ContainerRecord> containers;
  std::string_view phase;
};

TEST(PodPhase, FollowsTheDecisionOrderOfKubernetes) {
  const PhaseCase kCases[] = {
      {"a container that never ran keeps the pod pending",
       {.mains = 2},
       {running("main")},
       "Pending"},
      {"all containers running is Running", {}, {running("main")}, "Running"},
      {"one running and one ended is Running",
       {.mains = 2},
       {running("main"), exited("other", 1)},
       "Running"},
      {"all ended well is Succeeded",
       {.mains = 2},
       {exited("main", 0), exited("other", 0)},
       "Succeeded"},
      {"one failure under Never is Failed",
       {.mains = 2},
       {exited("main", 0), exited("other", 3)},
       "Failed"},
      {"a failure under OnFailure stays Running",
       {.policy = "OnFailure"},
       {exited("main", 3)},
       "Running"},
      {"a success under OnFailure is Succeeded",
       {.policy = "OnFailure"},
       {exited("main", 0)},
       "Succeeded"},
      {"a success under Always stays Running",
       {.policy = "Always"},
       {exited("main", 0)},
       "Running"},
      {"a running init container keeps the pod pending",
       {.init = true},
       {running("prepare")},
       "Pending"},
      {"a failed init container under Never fails the pod",
       {.init = true},
       {exited("prepare", 1)},
       "Failed"},
      {"a failed init container under Always keeps it pending",
       {.policy = "Always", .init = true},
       {exited("prepare", 1)},
       "Pending"},
      {"a sidecar that still runs delays the end",
       {.init = true, .sidecar = true},
       {running("prepare"), exited("main", 0)},
       "Running"},
      {"the end of a sidecar does not decide the phase",
       {.init = true, .sidecar = true},
       {exited("prepare", 143), exited("main", 0)},
       "Succeeded"},
  };
  for (const PhaseCase& c : kCases) {
    SCOPED_TRACE(c.sentence);
    EXPECT_EQ(planned_phase(plan_pod(plan_view(c.pod, sandbox(c.containers)), kNow)), c.phase);
  }
}

TEST(PodPlan, MakesTheSandboxBeforeAnyContainer) {
  const PodActions actions = plan_pod(plan_view({}), kNow);
  EXPECT_TRUE(actions.start_sandbox);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(planned_phase(actions), "Pending");
  EXPECT_EQ(waiting(actions), "ContainerCreating");
  EXPECT_EQ(condition(actions, "PodReadyToStartContainers"), "False");
  EXPECT_EQ(json::get_string(*actions.status, {"startTime"}), "2026-01-02T03:04:05Z");
  EXPECT_EQ(json::get_string(*actions.status, {"qosClass"}), "BestEffort");
}

TEST(PodPlan, StartsAllContainersInALivingSandboxAndTellsAddresses) {
  const PodActions actions = plan_pod(plan_view({.mains = 2}, sandbox({})), kNow);
  EXPECT_FALSE(actions.start_sandbox);
  const std::vector<PodActions::Start> both = {{"main", 0}, {"other", 0}};
  EXPECT_EQ(actions.start, both);
  EXPECT_EQ(json::get_string(*actions.status, {"podIP"}), "10.0.0.9");
  EXPECT_EQ(json::get_string(*actions.status, {"hostIP"}), "10.0.0.1");
  EXPECT_EQ(condition(actions, "PodReadyToStartContainers"), "True");
}

TEST(PodPlan, RunsInitContainersOneByOneBeforeTheRest) {
  const PodBuilder pod{.init = true};
  PodActions actions = plan_pod(plan_view(pod, sandbox({})), kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"prepare", 0}}));
  EXPECT_EQ(waiting(actions), "PodInitializing");
  EXPECT_EQ(condition(actions, "Initialized"), "False ContainersNotInitialized");
  actions = plan_pod(plan_view(pod, sandbox({running("prepare")})), kNow);
  EXPECT_TRUE(actions.start.empty());
  actions = plan_pod(plan_view(pod, sandbox({exited("prepare", 0)})), kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 0}}));
  EXPECT_EQ(condition(actions, "Initialized"), "True");
}

TEST(PodPlan, ContainersThatAFailedInitContainerKeptFromStartingStayInitializing) {
  const PodBuilder pod{.policy = "Never", .init = true};
  const PodActions actions = plan_pod(plan_view(pod, sandbox({exited("prepare", 1)})), kNow);
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_EQ(waiting(actions), "PodInitializing");
}

TEST(PodPlan, KeepsSidecarsBesideTheContainersAndEndsThemAfter) {
  const PodBuilder pod{.init = true, .sidecar = true};
  PodActions actions = plan_pod(plan_view(pod, sandbox({running("prepare")})), kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 0}}));
  actions = plan_pod(plan_view(pod, sandbox({running("prepare"), exited("main", 0)})), kNow);
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"prepare", SIGTERM}}));
}

TEST(PodPlan, TellsAReadyPodByItsConditions) {
  const PodActions actions = plan_pod(plan_view({}, sandbox({running("main")})), kNow);
  EXPECT_EQ(condition(actions, "Ready"), "True");
  EXPECT_EQ(condition(actions, "ContainersReady"), "True");
  const json::value& main = container_status(actions, "main");
  EXPECT_EQ(json::get_bool(main, {"ready"}), true);
  EXPECT_EQ(json::get_bool(main, {"started"}), true);
  EXPECT_EQ(json::get_string(main, {"containerID"}), "skiff://u1.main.0");
  EXPECT_EQ(json::get_string(main, {"state", "running", "startedAt"}), "2026-01-02T03:04:00Z");
}

TEST(PodPlan, KeepsConditionsOfOthersAndTheTimeOfTheLastTransition) {
  PodBuilder pod;
  pod.status =
      R"({"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"x"},
          {"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]})";
  const PodActions actions = plan_pod(plan_view(pod, sandbox({running("main")})), kNow);
  EXPECT_EQ(condition(actions, "PodScheduled"), "True");
  const json::value wrapped = json::object{{"status", *actions.status}};
  EXPECT_EQ(json::get_string(json::value(*api::condition(wrapped, "Initialized")),
                             {"lastTransitionTime"}),
            "2026-01-01T00:00:00Z");
}

TEST(PodPlan, HoldsReadyBackForReadinessGates) {
  const PodBuilder pod{.extra_spec = R"(,"readinessGates":[{"conditionType":"x/y"}])"};
  const PodActions actions = plan_pod(plan_view(pod, sandbox({running("main")})), kNow);
  EXPECT_EQ(condition(actions, "ContainersReady"), "True");
  EXPECT_EQ(condition(actions, "Ready"), "False ReadinessGatesNotReady");
}

TEST(PodPlan, SaysNothingTwice) {
  PodBuilder pod;
  const PodActions first = plan_pod(plan_view(pod, sandbox({running("main")})), kNow);
  pod.status = json::serialize(*first.status);
  const PodActions second =
      plan_pod(plan_view(pod, sandbox({running("main")})), kNow + seconds(60));
  EXPECT_FALSE(second.status) << json::serialize(*second.status);
}

struct EndCase {
  std::string_view sentence;
  ContainerRecord record;
  std::string_view reason;
  int code;
};

TEST(PodPlan, NamesHowAContainerEnded) {
  ContainerRecord oom = exited("main", 137);
  oom.oom_killed = true;
  ContainerRecord unstarted = exited("main", 0);
  unstarted.state = ContainerState::kFailedToStart;
  unstarted.message = "no such program";
  const EndCase kCases[] = {
      {"exit 0 is Completed", exited("main", 0), "Completed", 0},
      {"another code is Error", exited("main", 2), "Error", 2},
      {"killed for memory is OOMKilled", oom, "OOMKilled", 137},
      {"a plain kill is no OOM", exited("main", 137), "Error", 137},
      {"a program that cannot start is StartError", unstarted, "StartError", 128},
  };
  for (const EndCase& c : kCases) {
    SCOPED_TRACE(c.sentence);
    const PodActions actions = plan_pod(plan_view({}, sandbox({c.record})), kNow);
    EXPECT_EQ(ended(actions), c.reason);
    EXPECT_EQ(json::get_int(container_status(actions, "main"), {"state", "terminated", "exitCode"}),
              c.code);
    EXPECT_TRUE(actions.terminal);
    EXPECT_TRUE(actions.stop_sandbox);
  }
}

TEST(PodPlan, NeverRunsAFinishedPodAgain) {
  for (const char* over : {"Succeeded", "Failed"}) {
    PodBuilder pod{.policy = "Always"};
    pod.status = std::string(R"({"phase":")") + over + R"("})";
    PodActions actions = plan_pod(plan_view(pod), kNow);
    EXPECT_FALSE(actions.start_sandbox);
    EXPECT_FALSE(actions.status);
    actions = plan_pod(plan_view(pod, sandbox({running("main")})), kNow);
    EXPECT_TRUE(actions.stop_sandbox);
    EXPECT_TRUE(actions.start.empty());
  }
}

TEST(PodPlan, RestartsAtOnceTheFirstTimeAndCountsTheAttempt) {
  const PodActions actions =
      plan_pod(plan_view({.policy = "OnFailure"}, sandbox({exited("main", 1)})), kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 1}}));
}

TEST(PodPlan, BacksOffLongerAndLongerAndShowsIt) {
  const int delays[] = {0, 0, 10, 20, 40, 80, 160, 300, 300};
  for (int streak = 0; streak < 9; ++streak) {
    EXPECT_EQ(restart_delay(streak), seconds(delays[streak])) << streak;
  }
  PodView second = plan_view({.policy = "Always"}, sandbox({exited("main", 1, 1)}));
  second.memory.restarts["main"] = {.counted = 0, .streak = 1};
  PodActions actions = plan_pod(second, kNow + seconds(3));
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(waiting(actions), "CrashLoopBackOff");
  EXPECT_EQ(
      json::get_int(container_status(actions, "main"), {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_EQ(json::get_int(container_status(actions, "main"), {"restartCount"}), 1);
  EXPECT_EQ(actions.wake_after, Duration(seconds(7)));
  ASSERT_EQ(actions.notes.size(), 1U);
  EXPECT_EQ(actions.notes[0].reason, "BackOff");
  second.memory = actions.memory;
  actions = plan_pod(second, kNow + seconds(10));
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 2}}));
}

TEST(PodPlan, ForgetsTheBackOffAfterTenMinutesOfRunning) {
  ContainerRecord record = exited("main", 1, 6);
  record.started_at = kNow - minutes(11);
  PodView late = plan_view({.policy = "Always"}, sandbox({record}));
  late.memory.restarts["main"] = {.counted = 5, .streak = 6};
  const PodActions actions = plan_pod(late, kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 7}}));
  EXPECT_EQ(actions.memory.restarts.at("main").streak, 1);
}

TEST(PodPlan, WithoutMemoryTakesTheBackOffFromTheRestartCount) {
  const PodActions actions =
      plan_pod(plan_view({.policy = "Always"}, sandbox({exited("main", 1, 3)})), kNow);
  EXPECT_EQ(actions.wake_after, Duration(seconds(40)));
}

TEST(PodPlan, MovesTheEndOfTheRunBeforeIntoLastState) {
  PodBuilder pod{.policy = "Always"};
  const PodActions first = plan_pod(plan_view(pod, sandbox({exited("main", 4)})), kNow);
  pod.status = json::serialize(*first.status);
  const PodActions actions = plan_pod(plan_view(pod, sandbox({running("main", 1)})), kNow);
  const json::value& main = container_status(actions, "main");
  EXPECT_EQ(json::get_int(main, {"lastState", "terminated", "exitCode"}), 4);
  EXPECT_EQ(json::get_int(main, {"restartCount"}), 1);
  EXPECT_NE(json::find(main, {"state", "running"}), nullptr);
}

TEST(PodPlan, ShowsAnObstacleAndStartsNothingUntilItsRetry) {
  PodView blocked = plan_view({}, sandbox({}));
  blocked.obstacles["main"] = {.reason = "CreateContainerConfigError",
                               .message = "secret \"s\" not found",
                               .since = kNow,
                               .retry_at = kNow + seconds(2)};
  PodActions actions = plan_pod(blocked, kNow);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(waiting(actions), "CreateContainerConfigError");
  EXPECT_EQ(actions.wake_after, Duration(seconds(2)));
  actions = plan_pod(blocked, kNow + seconds(2));
  EXPECT_EQ(actions.start.size(), 1U);
}

TEST(PodPlan, TurnsAPullErrorIntoAPullBackOff) {
  PodView blocked = plan_view({}, sandbox({}));
  blocked.obstacles["main"] = {.reason = "ErrImagePull",
                               .message = "not mapped",
                               .since = kNow,
                               .retry_at = kNow + seconds(300)};
  EXPECT_EQ(waiting(plan_pod(blocked, kNow)), "ErrImagePull");
  const PodActions later = plan_pod(blocked, kNow + seconds(10));
  EXPECT_EQ(waiting(later), "ImagePullBackOff");
  EXPECT_EQ(json::get_string(container_status(later, "main"), {"state", "waiting", "message"}),
            "Back-off pulling image \"img\": not mapped");
  const auto notes = [](const PodActions& actions) {
    std::vector<std::string> out;
    for (const PodNote& note : actions.notes) out.push_back(note.reason + ": " + note.message);
    return out;
  };
  EXPECT_EQ(notes(later), (std::vector<std::string>{"BackOff: Back-off pulling image \"img\"",
                                                    "Failed: Error: ImagePullBackOff"}));
  json::value told = *blocked.pod;
  told.as_object()["status"] = *later.status;
  blocked.pod = std::make_shared<const json::value>(told);
  EXPECT_TRUE(notes(plan_pod(blocked, kNow + seconds(11))).empty()) << "once is enough";
}

TEST(PodPlan, AShortWaitForAnImageIsShownAsOneToo) {
  PodView blocked = plan_view({}, sandbox({}));
  blocked.obstacles["main"] = {
      .reason = "ErrImagePull", .message = "m", .since = kNow, .retry_at = kNow + seconds(10)};
  EXPECT_EQ(waiting(plan_pod(blocked, kNow + seconds(4))), "ErrImagePull");
  EXPECT_EQ(waiting(plan_pod(blocked, kNow + seconds(5))), "ImagePullBackOff");
  EXPECT_EQ(plan_pod(blocked, kNow + seconds(10)).start.size(), 1U);
}

TEST(PodPlan, TellsWhichImageRuns) {
  const auto id = [](const PodActions& actions) {
    return std::string(json::get_string(container_status(actions, "main"), {"imageID"}));
  };
  PodView running = plan_view({}, sandbox({{.name = "main"}}));
  EXPECT_EQ(id(plan_pod(running, kNow)), "img") << "a mapped image has no other name";
  running.image_ids["main"] = "docker.io/library/img@sha256:1";
  const PodActions first = plan_pod(running, kNow);
  EXPECT_EQ(id(first), "docker.io/library/img@sha256:1");
  // A new Skiff does not know it; what the API says stays.
  json::value told = *running.pod;
  told.as_object()["status"] = *first.status;
  told.as_object()["status"].as_object()["phase"] = "Pending";
  running.pod = std::make_shared<const json::value>(told);
  running.image_ids.clear();
  EXPECT_EQ(id(plan_pod(running, kNow)), "docker.io/library/img@sha256:1");
  EXPECT_EQ(id(plan_pod(plan_view({}), kNow)), "") << "nothing has run";
}

TEST(PodPlan, WaitsBeforeItTriesAFailedSandboxAgain) {
  PodView blocked = plan_view({});
  blocked.sandbox_obstacle = Obstacle{.message = "no bridge", .retry_at = kNow + seconds(4)};
  const PodActions actions = plan_pod(blocked, kNow);
  EXPECT_FALSE(actions.start_sandbox);
  EXPECT_EQ(actions.wake_after, Duration(seconds(4)));
  EXPECT_TRUE(plan_pod(blocked, kNow + seconds(4)).start_sandbox);
}

TEST(PodPlan, DeletionAsksThenKillsAfterTheGraceThenLetsTheObjectGo) {
  const PodBuilder pod{.policy = "Always", .extra_metadata = kDeleting};
  PodView at = plan_view(pod, sandbox({running("main")}));
  PodActions actions = plan_pod(at, kNow);
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGTERM}}));
  EXPECT_EQ(actions.wake_after, Duration(seconds(30)));
  ASSERT_EQ(actions.notes.size(), 1U);
  EXPECT_EQ(actions.notes[0].reason, "Killing");
  EXPECT_FALSE(actions.finalise_delete);

  at.memory = actions.memory;
  EXPECT_TRUE(plan_pod(at, kNow + seconds(29)).signals.empty());
  actions = plan_pod(at, kNow + seconds(30));
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGKILL}}));

  at.sandbox = sandbox({exited("main", 137)});
  actions = plan_pod(at, kNow + seconds(31));
  EXPECT_TRUE(actions.stop_sandbox);
  EXPECT_TRUE(actions.terminal);
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_FALSE(actions.finalise_delete);

  at.sandbox = sandbox({exited("main", 137)}, false);
  EXPECT_TRUE(plan_pod(at, kNow + seconds(31)).finalise_delete);
}

TEST(PodPlan, DeletionOfAPodThatNeverStartedNeedsNoSandbox) {
  const PodActions actions = plan_pod(plan_view({.extra_metadata = kDeleting}), kNow);
  EXPECT_TRUE(actions.finalise_delete);
  EXPECT_FALSE(actions.start_sandbox);
  EXPECT_FALSE(actions.stop_sandbox);
}

TEST(PodPlan, ADeletedPodWhoseContainersEndedWellHasSucceeded) {
  const PodBuilder pod{.policy = "Always", .extra_metadata = kDeleting};
  EXPECT_EQ(planned_phase(plan_pod(plan_view(pod, sandbox({exited("main", 0)})), kNow)),
            "Succeeded");
}

TEST(PodPlan, TheDeadlineEndsThePodWithItsReasonOnceAllHasStopped) {
  PodBuilder pod{.policy = "Always",
                 .extra_spec = R"(,"activeDeadlineSeconds":60,"terminationGracePeriodSeconds":5)"};
  pod.status = R"({"startTime":"2026-01-02T03:04:05Z"})";
  PodView at = plan_view(pod, sandbox({running("main")}));
  PodActions actions = plan_pod(at, kNow + seconds(59));
  EXPECT_TRUE(actions.signals.empty());
  EXPECT_EQ(actions.wake_after, Duration(seconds(1)));
  actions = plan_pod(at, kNow + seconds(60));
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGTERM}}));
  EXPECT_EQ(planned_phase(actions), "Running");
  EXPECT_EQ(actions.wake_after, Duration(seconds(5)));
  at.sandbox = sandbox({exited("main", 0)});
  actions = plan_pod(at, kNow + seconds(61));
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_EQ(json::get_string(*actions.status, {"reason"}), "DeadlineExceeded");
}

TEST(PodPlan, AnEvictedPodHasTwoSecondsToEndAndFails) {
  PodView at = plan_view({.policy = "Always"}, sandbox({running("main")}));
  at.eviction = "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ";
  PodActions actions = plan_pod(at, kNow);
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGTERM}}));
  EXPECT_EQ(actions.wake_after, Duration(seconds(2)));
  EXPECT_EQ(planned_phase(actions), "Running");
  at.memory = actions.memory;
  actions = plan_pod(at, kNow + seconds(2));
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGKILL}}));
  at.sandbox = sandbox({exited("main", 137)});
  actions = plan_pod(at, kNow + seconds(3));
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(json::get_string(*actions.status, {"reason"}), "Evicted");
  EXPECT_EQ(json::get_string(*actions.status, {"message"}), *at.eviction);
}

TEST(PodPlan, APodThatWantsTheMachinesSettingsIsRejectedBeforeItStarts) {
  const PodBuilder pod{
      .extra_spec = R"(,"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]})"};
  const PodActions actions = plan_pod(plan_view(pod), kNow);
  EXPECT_FALSE(actions.start_sandbox);
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_EQ(json::get_string(*actions.status, {"reason"}), "SysctlForbidden");
  EXPECT_EQ(json::get_string(*actions.status, {"message"}),
            "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
}

TEST(PodPlan, APodWhosePortAnotherHasIsRejectedBeforeItStarts) {
  PodView at = plan_view({});
  at.port_clash = "Pod was rejected: taken";
  const PodActions actions = plan_pod(at, kNow);
  EXPECT_FALSE(actions.start_sandbox);
  EXPECT_EQ(planned_phase(actions), "Failed");
  EXPECT_EQ(json::get_string(*actions.status, {"reason"}), "NodePorts");
  EXPECT_EQ(json::get_string(*actions.status, {"message"}), "Pod was rejected: taken");
}

TEST(PodPlan, ALostSandboxEndsItsContainersAndRestartsThemByThePolicy) {
  PodActions actions = plan_pod(plan_view({}, sandbox({running("main")}, false)), kNow);
  EXPECT_EQ(ended(actions), "ContainerStatusUnknown");
  EXPECT_EQ(planned_phase(actions), "Failed");
  actions = plan_pod(plan_view({.policy = "OnFailure"}, sandbox({running("main")}, false)), kNow);
  EXPECT_TRUE(actions.start_sandbox);
  EXPECT_EQ(planned_phase(actions), "Running");
}

TEST(PodPlan, AfterARebootOnlyTheStatusRemembersAndTheAttemptGoesOn) {
  PodBuilder pod{.policy = "OnFailure"};
  pod.status =
      R"({"phase":"Running","startTime":"2026-01-02T03:04:00Z","containerStatuses":[{"name":"main",
          "restartCount":2,"state":{"running":{"startedAt":"2026-01-02T03:04:00Z"}}}]})";
  const PodActions lost = plan_pod(plan_view(pod), kNow);
  EXPECT_EQ(json::get_int(container_status(lost, "main"), {"restartCount"}), 2);
  pod.status = json::serialize(*lost.status);
  const PodActions again = plan_pod(plan_view(pod, sandbox({})), kNow + minutes(6));
  EXPECT_EQ(again.start, (std::vector<PodActions::Start>{{"main", 3}}));
}

TEST(PodPlan, TellsTheQualityOfServiceFromRequestsAndLimits) {
  const struct {
    const char* resources;
    const char* expected;
  } kCases[] = {
      {R"({})", "BestEffort"},
      {R"({"requests":{"cpu":1}})", "Burstable"},
      {R"({"limits":{"cpu":1,"memory":"1Gi"}})", "Guaranteed"},
      {R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m","memory":"1024Mi"}})",
       "Guaranteed"},
      {R"({"limits":{"cpu":2,"memory":"1Gi"},"requests":{"cpu":1}})", "Burstable"},
  };
  for (const auto& c : kCases) {
    const json::value pod =
        parse(std::string(R"({"spec":{"containers":[{"resources":)") + c.resources + "}]}}");
    EXPECT_EQ(qos_class(pod), c.expected) << c.resources;
  }
}

TEST(StatusPatch, CarriesOnlyWhatChangedAndNullsWhatWent) {
  const json::value patch = status_patch(parse(R"({"phase":"Pending","reason":"x","podIP":"1"})"),
                                         parse(R"({"phase":"Running","podIP":"1"})"));
  EXPECT_EQ(patch, parse(R"({"status":{"phase":"Running","reason":null}})"));
}

// Probes: the verdict is made elsewhere, the plan acts on it.
PodView probed(PodBuilder pod, std::vector<ContainerRecord> containers, Verdict verdict,
               const std::string& name = "main") {
  PodView out = plan_view(pod, sandbox(std::move(containers)));
  out.health[name] = verdict;
  return out;
}

TEST(PodProbes, AContainerThatIsNotReadyKeepsThePodUnready) {
  const auto actions = plan_pod(
      probed({}, {running("main")}, {.attempt = 0, .started = true, .ready = false}), kNow);
  EXPECT_EQ(planned_phase(actions), "Running");
  EXPECT_EQ(condition(actions, "Ready"), "False ContainersNotReady");
  EXPECT_EQ(condition(actions, "ContainersReady"), "False ContainersNotReady");
  EXPECT_EQ(json::get_bool(container_status(actions, "main"), {"ready"}), false);
  EXPECT_EQ(json::get_bool(container_status(actions, "main"), {"started"}), true);
}

TEST(PodProbes, AVerdictAboutAnEarlierRunSaysNothingAboutThisOne) {
  const auto actions = plan_pod(
      probed({}, {running("main", 1)}, {.attempt = 0, .failed = ProbeKind::kLiveness}), kNow);
  EXPECT_TRUE(actions.signals.empty());
  EXPECT_EQ(condition(actions, "Ready"), "True");
}

TEST(PodProbes, AFailedProbeEndsTheContainerOnceAndThenByForce) {
  PodView at = probed({.policy = "Always"}, {running("main")},
                      {.attempt = 0, .failed = ProbeKind::kLiveness});
  auto actions = plan_pod(at, kNow);
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGTERM}}));
  EXPECT_EQ(
      actions.notes,
      (std::vector<PodNote>{
          {false, "Killing", "Container main failed liveness probe, will be restarted", "main"}}));
  at.memory = actions.memory;
  actions = plan_pod(at, kNow + seconds(29));
  EXPECT_TRUE(actions.signals.empty());
  EXPECT_TRUE(actions.notes.empty());
  actions = plan_pod(at, kNow + seconds(30));
  EXPECT_EQ(actions.signals, (std::vector<PodActions::Signal>{{"main", SIGKILL}}));
}

TEST(PodProbes, TheProbesOwnGraceGoesBeforeThePods) {
  PodBuilder pod{.policy = "Never"};
  PodView at = probed(pod, {running("main")}, {.attempt = 0, .failed = ProbeKind::kStartup});
  json::value changed = *at.pod;
  json::make_object(changed, {"spec"})["containers"].as_array()[0].as_object()["startupProbe"] =
      json::object{{"terminationGracePeriodSeconds", 5}};
  at.pod = std::make_shared<const json::value>(changed);
  auto actions = plan_pod(at, kNow);
  ASSERT_EQ(actions.notes.size(), 1U);
  EXPECT_EQ(actions.notes[0].message, "Container main failed startup probe");
  at.memory = actions.memory;
  EXPECT_TRUE(plan_pod(at, kNow + seconds(4)).signals.empty());
  EXPECT_EQ(plan_pod(at, kNow + seconds(5)).signals,
            (std::vector<PodActions::Signal>{{"main", SIGKILL}}));
}

TEST(PodProbes, TheContainersAfterASidecarWaitUntilItHasStarted) {
  const PodBuilder pod{.init = true, .sidecar = true};
  auto actions = plan_pod(probed(pod, {running("prepare")},
                                 {.attempt = 0, .started = false, .ready = false}, "prepare"),
                          kNow);
  EXPECT_TRUE(actions.start.empty());
  EXPECT_EQ(condition(actions, "Initialized"), "False ContainersNotInitialized");
  EXPECT_EQ(waiting(actions), "PodInitializing");
  actions = plan_pod(probed(pod, {running("prepare")}, {.attempt = 0}, "prepare"), kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 0}}));
  EXPECT_EQ(condition(actions, "Initialized"), "True");
}

TEST(PodProbes, ASidecarThatStartsAnewHoldsUpNothing) {
  const PodBuilder pod{.policy = "Always", .init = true, .sidecar = true};
  const auto actions = plan_pod(probed(pod, {running("prepare", 1), exited("main", 1)},
                                       {.attempt = 1, .started = false, .ready = false}, "prepare"),
                                kNow);
  EXPECT_EQ(actions.start, (std::vector<PodActions::Start>{{"main", 1}}));
  EXPECT_EQ(condition(actions, "Initialized"), "True");
}

}  // namespace
}  // namespace skiff::node
