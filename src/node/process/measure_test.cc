// What containers use, as the kernel counts it: by control groups as root, by processes without.
#include <gtest/gtest.h>

#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

class Measured : public PodFixture {
 protected:
  void work(const std::string& uid, const std::string& script) {
    start_pod(uid);
    const auto started = runtime().start_container(
        uid, {.name = "main", .argv = {"/bin/sh", "-c", script}, .env = {"PATH=/usr/bin:/bin"}});
    ASSERT_TRUE(started) << started.error().message;
  }
  std::optional<Reading> look(const std::string& uid) {
    const auto sandbox = runtime().inspect(uid);
    EXPECT_TRUE(sandbox);
    for (const ContainerRecord& record : sandbox->containers) {
      if (record.name != "main") continue;
      return runtime().measure({{.pod_uid = uid, .container = "main", .pid = record.pid}}, true)[0];
    }
    return std::nullopt;
  }
  // Two children work: what they use is the container's.
  void see_work() {
    work("busy", "(while :; do :; done) & (while :; do :; done) & wait");
    work("idle", "echo ready; exec sleep 600");
    wait_log("idle", "main", "ready");
    std::optional<Reading> busy = look("busy");
    for (int i = 0; i < 12'000 && busy && busy->cpu_ns < 200'000'000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      busy = look("busy");
    }
    ASSERT_TRUE(busy);
    EXPECT_GE(busy->cpu_ns, 200'000'000);
    EXPECT_GT(busy->memory_bytes, 0);
    const auto idle = look("idle");
    ASSERT_TRUE(idle);
    EXPECT_LT(idle->cpu_ns, busy->cpu_ns);
    EXPECT_GT(idle->memory_bytes, 0);
  }
};

class MeasuredAsRoot : public Measured {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    Measured::SetUp();
  }
};

class MeasuredWithoutRights : public Measured {
 protected:
  bool privileged() const override { return false; }
};

TEST_F(MeasuredAsRoot, WorkOfAllProcessesIsSeen) { see_work(); }
TEST_F(MeasuredWithoutRights, WorkOfAllProcessesIsSeen) { see_work(); }

TEST_F(MeasuredWithoutRights, WhatHasEndedIsNotMeasured) {
  start_pod("gone");
  (void)run("gone", {.name = "main", .argv = {"/bin/true"}});
  EXPECT_FALSE(look("gone"));
  EXPECT_FALSE(runtime().measure({{.pod_uid = "no", .container = "main", .pid = 0}}, true)[0]);
}

}  // namespace
}  // namespace skiff::node
