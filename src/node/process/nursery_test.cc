// The process that shims are forked from: what ends with it, and what does not.
#include "node/process/nursery.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

class NurseryOfPods : public PodFixture {
 protected:
  bool privileged() const override { return ::geteuid() == 0; }

  pid_t shim_of(const std::string& uid) {
    const auto connection = connect_shim(*runtime().pod_folder(uid));
    const auto pid = connection ? shim_pid(*connection) : Result<pid_t>(0);
    EXPECT_TRUE(pid && *pid > 1);
    return pid ? *pid : 0;
  }

  static std::string proc(pid_t pid, const std::string& file) {
    return read_file("/proc/" + std::to_string(pid) + "/" + file).value_or("");
  }

  static pid_t parent(pid_t pid) {
    const std::string stat = proc(pid, "stat");
    return std::atoi(stat.c_str() + stat.rfind(')') + 4);
  }
};

TEST_F(NurseryOfPods, EachShimShowsTheFolderOfItsPod) {
  start_pod("p1");
  start_pod("p2");
  for (const std::string uid : {"p1", "p2"}) {
    const std::string line = proc(shim_of(uid), "cmdline");
    const std::string wanted =
        std::string("skiff\0shim\0", 11) + *runtime().pod_folder(uid) + std::string(1, '\0');
    EXPECT_TRUE(line.starts_with(wanted)) << line;
    EXPECT_EQ(proc(shim_of(uid), "comm"), "skiff-shim\n");
  }
  EXPECT_EQ(proc(parent(shim_of("p1")), "comm"), "skiff-nursery\n");
  EXPECT_EQ(parent(shim_of("p1")), parent(shim_of("p2"))) << "one for all";
}

TEST_F(NurseryOfPods, OneThatWasKilledIsBegunAnewAndItsShimsGoOn) {
  start_pod("p1");
  const pid_t shim = shim_of("p1");
  const pid_t nursery = parent(shim);
  ASSERT_GT(nursery, 1);
  ::kill(nursery, SIGKILL);
  start_pod("p2");
  EXPECT_NE(parent(shim_of("p2")), nursery);
  EXPECT_EQ(shim_of("p1"), shim) << "the pod's shim is the one it was";
  EXPECT_EQ(run("p1", {.name = "main", .argv = {"/bin/true"}}).exit_code, 0);
}

TEST_F(NurseryOfPods, ItEndsWithItsSkiffAndTheShimsStay) {
  start_pod("p1");
  const pid_t shim = shim_of("p1");
  const pid_t nursery = parent(shim);
  ASSERT_EQ(::kill(nursery, 0), 0);
  restart_runtime();
  EXPECT_NE(::kill(nursery, 0), 0) << "it was waited for";
  EXPECT_EQ(shim_of("p1"), shim);
  EXPECT_TRUE(runtime().inspect("p1")->alive);
}

TEST_F(NurseryOfPods, AShimThatEndedLeavesNoZombie) {
  start_pod("p1");
  const pid_t shim = shim_of("p1");
  ASSERT_TRUE(runtime().stop_sandbox("p1"));
  for (int i = 0; i < 12'000 && ::kill(shim, 0) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_NE(::kill(shim, 0), 0);
}

TEST_F(NurseryOfPods, ManyThreadsMayAskAtOnce) {
  std::atomic<int> alive = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto made = runtime().start_sandbox({.pod_uid = "p" + std::to_string(i)});
        if (made && made->alive) ++alive;
      });
    }
  }
  EXPECT_EQ(alive, 8);
}

TEST_F(NurseryOfPods, WhatKeepsAShimFromStartingIsSaid) {
  const std::string empty = folder() + "/pods/empty";
  std::filesystem::create_directories(empty);
  Nursery nursery(options().skiff_binary, options().pods_folder);
  const auto made = nursery.start_shim(empty);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("sandbox.json"), std::string::npos) << made.error().message;
  Nursery none("/no/such/skiff", options().pods_folder);
  const auto failed = none.start_shim(empty);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "cannot start /no/such/skiff: No such file or directory");
}

}  // namespace
}  // namespace skiff::node
