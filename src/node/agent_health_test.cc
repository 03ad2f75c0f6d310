// Probes and hooks.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

TEST_F(AgentTest, ReadinessFollowsItsProbeAndAnErrorIsTold) {
  std::atomic_bool well = false;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = well ? 0 : 1, .output = "not yet"};
  });
  start();
  create_pod("p", "u1", "",
             R"(,"readinessProbe":{"exec":{"command":["check"]},"periodSeconds":1})");
  const auto ready = [&] {
    const auto pod = client_.get(kPods, "default", "p");
    return pod && api::condition_true(*pod, "Ready");
  };
  EXPECT_TRUE(eventually([&] { return event("Unhealthy") == "Readiness probe failed: not yet"; }));
  EXPECT_EQ(phase("p"), "Running");
  EXPECT_FALSE(ready());
  well = true;
  EXPECT_TRUE(eventually(ready));
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AFailedLivenessProbeRestartsTheContainer) {
  std::atomic_int asked = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = asked++ == 0 ? 1 : 0, .output = "stuck"};
  });
  start();
  create_pod("p", "u1", R"(,"restartPolicy":"Always")",
             R"(,"livenessProbe":{"exec":{"command":["check"]},"failureThreshold":1})");
  EXPECT_TRUE(eventually([&] { return journal_count("start u1/main/1") == 1; }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(event("Unhealthy"), "Liveness probe failed: stuck");
  EXPECT_EQ(event("Killing"), "Container main failed liveness probe, will be restarted");
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AProbeThatHangsHoldsUpNeitherItsPodNorOthers) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.hangs = true}; });
  start();
  for (int i = 0; i < 10; ++i) {
    create_pod("p" + std::to_string(i), "u" + std::to_string(i), "",
               R"(,"livenessProbe":{"exec":{"command":["check"]},"timeoutSeconds":600})");
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(eventually([&] { return phase("p" + std::to_string(i)) == "Running"; }));
  }
  remove_pod("p0", 5);
  EXPECT_TRUE(eventually([&] { return phase("p0") == "gone"; }));
  const auto before = std::chrono::steady_clock::now();
  agent_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
}

TEST_F(AgentTest, ReadinessAndItsProbesWaitForTheHookOfTheStart) {
  std::atomic_bool may_end = false;
  std::atomic_int probes = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec& spec) {
    if (spec.argv.at(0) == "probe") ++probes;
    while (spec.argv.at(0) == "hook" && !may_end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return FakeRuntime::Told{};
  });
  start();
  create_pod("p", "u1", "",
             R"(,"lifecycle":{"postStart":{"exec":{"command":["hook"]}}},
                 "readinessProbe":{"exec":{"command":["probe"]}})");
  EXPECT_TRUE(eventually([&] { return journal_count("exec u1/main/hook") == 1; }));
  create_pod("q", "u2");
  EXPECT_TRUE(eventually([&] { return phase("q") == "Running"; }));
  EXPECT_EQ(phase("p"), "Pending");
  EXPECT_EQ(waiting("p"), "ContainerCreating");
  EXPECT_EQ(probes, 0);
  may_end = true;
  EXPECT_TRUE(eventually([&] {
    const auto pod = client_.get(kPods, "default", "p");
    return pod && api::condition_true(*pod, "Ready");
  }));
  EXPECT_EQ(journal_count("exec u1/main/hook"), 1);
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AFailedHookOfTheStartRestartsTheContainer) {
  std::atomic_int asked = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = asked++ == 0 ? 1 : 0, .output = "secret"};
  });
  start();
  create_pod("p", "u1", R"(,"restartPolicy":"OnFailure")",
             R"(,"lifecycle":{"postStart":{"exec":{"command":["hook"]}}})");
  EXPECT_TRUE(eventually([&] { return journal_count("start u1/main/1") == 1; }));
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(event("FailedPostStartHook"), "PostStartHook failed");
  EXPECT_EQ(event("Killing"), "FailedPostStartHook");
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, TheHookBeforeTheEndGoesBeforeTheSignal) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.exit_code = 1}; });
  start();
  create_pod("p", "u1", "", R"(,"lifecycle":{"preStop":{"exec":{"command":["hook"]}}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("exec u1/main/hook"), 0);
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  const auto journal = runtime_->journal();
  const auto hook = std::find(journal.begin(), journal.end(), "exec u1/main/hook");
  const auto term = std::find(journal.begin(), journal.end(), "signal u1/main/15");
  ASSERT_NE(term, journal.end());
  EXPECT_LT(hook, term);
  EXPECT_EQ(event("FailedPreStopHook"), "PreStopHook failed");
  EXPECT_EQ(journal_count("signal u1/main/9"), 0);
}

TEST_F(AgentTest, AHookThatHangsIsGivenUpWithItsContainerAndWithTheAgent) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.hangs = true}; });
  start();
  const std::string hooks = R"(,"lifecycle":{"preStop":{"exec":{"command":["hook"]}}})";
  create_pod("p", "u1", "", hooks);
  create_pod("q", "u2", "", hooks);
  for (const char* name : {"p", "q"}) {
    EXPECT_TRUE(eventually([&] { return phase(name) == "Running"; }));
  }
  remove_pod("p", 1);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  remove_pod("q", 600);
  EXPECT_TRUE(eventually([&] { return journal_count("exec u2/main/hook") == 1; }));
  const auto before = std::chrono::steady_clock::now();
  agent_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
}

}  // namespace
}  // namespace skiff::node
