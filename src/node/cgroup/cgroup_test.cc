#include "node/cgroup/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skiff::node {
namespace {

struct Case {
  const char* sentence;
  std::int64_t milli;
  std::int64_t shares;
  std::int64_t weight;
  std::int64_t quota;
};

TEST(Cgroup, CpuNumbersAreThoseOfKubernetes) {
  for (const Case& c :
       {Case{"one CPU", 1000, 1024, 100, 100'000}, Case{"half a CPU", 500, 512, 60, 50'000},
        Case{"the smallest share and quota", 1, 2, 1, 1'000}}) {
    EXPECT_EQ(cpu_shares(c.milli), c.shares) << c.sentence;
    EXPECT_EQ(cpu_quota_us(c.milli), c.quota) << c.sentence;
    EXPECT_NEAR(static_cast<double>(cpu_weight(c.shares)), static_cast<double>(c.weight), 2)
        << c.sentence;
  }
}

// A folder that looks like a cgroup mount: the kernel's files are plain files here.
TEST(Cgroup, Version2LimitsAreWrittenWhereItHasControllers) {
  const std::string root = ::testing::TempDir() + "/cgroup_v2_" + std::to_string(::getpid());
  const std::string leaf = root + "/skiff/pod/main";
  std::filesystem::create_directories(leaf);
  std::ofstream(root + "/cgroup.controllers") << "cpu memory pids\n";
  for (const char* name : {"", "/skiff", "/skiff/pod"}) {
    std::ofstream(root + name + "/cgroup.subtree_control");
  }
  for (const char* name : {"memory.max", "memory.oom.group", "cpu.max", "cpu.weight"}) {
    std::ofstream(leaf + "/" + name);
  }
  const Cgroups groups = Cgroups::detect(root);
  ASSERT_TRUE(groups.is_v2());
  const auto made =
      groups.make("skiff/pod/main",
                  {.memory_bytes = 1 << 20, .cpu_limit_milli = 1500, .cpu_request_milli = 1000});
  ASSERT_TRUE(made) << made.error().message;
  std::string line;
  std::getline(std::ifstream(leaf + "/cpu.max"), line);
  EXPECT_EQ(line, "150000 100000");
  std::getline(std::ifstream(leaf + "/memory.max"), line);
  EXPECT_EQ(line, "1048576");
  EXPECT_FALSE(groups.oom_killed("skiff/pod/main"));
  std::ofstream(leaf + "/memory.events") << "oom 1\noom_kill 1\n";
  EXPECT_TRUE(groups.oom_killed("skiff/pod/main"));
  std::filesystem::remove_all(root);
}

TEST(Cgroup, Version2IsOfNoUseWhereControllersCannotBeHandedDown) {
  const std::string root = ::testing::TempDir() + "/cgroup_busy_" + std::to_string(::getpid());
  // A folder of that name refuses the write, as the kernel does with EBUSY.
  std::filesystem::create_directories(root + "/cgroup.subtree_control");
  std::ofstream(root + "/cgroup.controllers") << "cpu memory pids\n";
  EXPECT_FALSE(Cgroups::detect(root).usable());
  std::filesystem::remove_all(root);
}

TEST(Cgroup, WithoutAMountNothingIsUsable) {
  EXPECT_FALSE(Cgroups::detect("/nonexistent").usable());
}

}  // namespace
}  // namespace skiff::node
