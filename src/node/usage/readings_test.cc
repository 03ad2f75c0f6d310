#include "node/usage/readings.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skiff::node {
namespace {

const std::int64_t kTick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
const std::int64_t kPage = ::sysconf(_SC_PAGE_SIZE);

// Files that look like the kernel's.
class Readings : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "skiff-readings-" + std::to_string(::getpid());
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    const std::string whole = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }
  // A process with these times in ticks and this many pages.
  void process(int pid, int parent, const std::string& times, int pages,
               const std::string& name = "sh") const {
    put("proc/" + std::to_string(pid) + "/stat",
        std::to_string(pid) + " (" + name + ") S " + std::to_string(parent) +
            " 1 1 0 -1 4194304 0 0 0 0 " + times + " 20 0 1 0 55 9999 " + std::to_string(pages) +
            " 18446744073709551615 0 0\n");
  }
  std::string proc() const { return root_ + "/proc"; }

  std::string root_;
};

TEST_F(Readings, OfAVersion2GroupAreItsOwnCounters) {
  put("cgroup.controllers", "cpu memory pids\n");
  put("cgroup.subtree_control", "");
  put("g/main/memory.current", "5000000\n");
  put("g/main/memory.stat", "anon 100\nfile 2000000\ninactive_anon 7\ninactive_file 1000000\n");
  put("g/main/cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n");
  const Cgroups groups = Cgroups::detect(root_);
  ASSERT_TRUE(groups.is_v2());
  const auto reading = read_group(groups, "g/main", true, proc());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->cpu_ns, 2'500'000'000);
  EXPECT_EQ(reading->memory_bytes, 4'000'000);
  const auto without = read_group(groups, "g/main", false, proc());
  ASSERT_TRUE(without);
  EXPECT_EQ(without->cpu_ns, reading->cpu_ns);
  EXPECT_EQ(without->memory_bytes, 0) << "nobody asked for it";
  EXPECT_FALSE(read_group(groups, "g/gone", true, proc()));
}

TEST_F(Readings, OfAVersion1GroupAreThoseOfTwoHierarchies) {
  put("memory/cgroup.procs", "");
  put("cpu/cgroup.procs", "");
  put("memory/g/main/memory.usage_in_bytes", "5000000\n");
  put("memory/g/main/memory.stat", "inactive_file 1\ntotal_inactive_file 6000000\n");
  put("cpu/g/main/cpuacct.usage", "123456789\n");
  const Cgroups groups = Cgroups::detect(root_);
  ASSERT_TRUE(groups.usable());
  ASSERT_FALSE(groups.is_v2());
  const auto reading = read_group(groups, "g/main", true, proc());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->cpu_ns, 123'456'789);
  EXPECT_EQ(reading->memory_bytes, 0) << "more idle pages than pages: never less than nothing";
  EXPECT_FALSE(read_group(groups, "g/gone", true, proc()));
}

TEST_F(Readings, WhereTheHierarchyCountsNoCpuItsProcessesDo) {
  put("memory/cgroup.procs", "");
  put("cpu/cgroup.procs", "");
  put("memory/g/main/memory.usage_in_bytes", "1000\n");
  put("memory/g/main/cgroup.procs", "10\n11\n12\n");
  process(10, 1, "100 20 3 1", 5);
  process(11, 10, "50 0 0 0", 5);
  process(13, 10, "1000 0 0 0", 5);  // of another group
  const auto reading = read_group(Cgroups::detect(root_), "g/main", true, proc());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->cpu_ns, 174 * kTick);
}

TEST_F(Readings, OfTreesGoToTheRootThatIsNearest) {
  process(1, 0, "7 0 0 0", 1);
  process(100, 1, "10 1 0 0", 10);
  process(101, 100, "5 0 0 0", 20);
  process(102, 101, "1 1 1 1", 30);
  process(200, 100, "40 0 0 0", 2);
  process(201, 200, "2 0 0 0", 3);
  process(300, 1, "1000 0 0 0", 1000);
  const auto readings = read_trees({100, 200, 999}, proc());
  ASSERT_EQ(readings.size(), 3u);
  ASSERT_TRUE(readings[0] && readings[1]);
  EXPECT_EQ(readings[0]->cpu_ns, 20 * kTick);
  EXPECT_EQ(readings[0]->memory_bytes, 60 * kPage);
  EXPECT_EQ(readings[1]->cpu_ns, 42 * kTick);
  EXPECT_EQ(readings[1]->memory_bytes, 5 * kPage);
  EXPECT_FALSE(readings[2]) << "there is no such process";
}

TEST_F(Readings, OfARingOfProcessesComeToAnEnd) {
  process(10, 11, "1 0 0 0", 1);
  process(11, 10, "1 0 0 0", 1);
  EXPECT_FALSE(read_trees({12}, proc())[0]);
}

TEST_F(Readings, OfTheMachineLeaveOutIdleAndWaitingTime) {
  put("proc/stat", "cpu  10 1 5 1000 500 2 3 99 4 0\ncpu0 10 1 5 1000 500 2 3 99 4 0\n");
  put("proc/meminfo", "MemTotal:       1000 kB\nMemFree:  100 kB\nMemAvailable:    400 kB\n");
  const auto reading = read_machine_usage(proc());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->cpu_ns, 21 * kTick);
  EXPECT_EQ(reading->memory_bytes, 600 * 1024);
  EXPECT_FALSE(read_machine_usage(root_ + "/nowhere"));
}

TEST(ProcessStat, NamesMayHoldAnything) {
  const auto stat = parse_stat("42 (a) b) R 7 1 1 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 55 9999 8 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->cpu_ns, 18 * kTick);
  EXPECT_EQ(stat->resident_bytes, 8 * kPage);
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("42 (a) R 7 1"));
  EXPECT_FALSE(parse_stat("42 (a)"));
}

// The kernel's own files.
TEST(MachineReadings, AProcessThatWorksIsSeenToWork) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (volatile unsigned long n = 0;; n = n + 1) {
    }
  }
  std::optional<Reading> reading;
  // As long as it takes on a busy machine: the counter grows or the test's own time is over.
  do {
    reading = read_trees({child})[0];
  } while (reading && reading->cpu_ns == 0);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(reading);
  EXPECT_GT(reading->cpu_ns, 0);
  EXPECT_GT(reading->memory_bytes, 0);
  const auto machine = read_machine_usage();
  ASSERT_TRUE(machine);
  EXPECT_GT(machine->memory_bytes, 0);
}

TEST(Network, BytesOfAllButTheLoopback) {
  const NetworkReading read = parse_network(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
      "    lo:  999999     100    0    0    0     0          0         0  999999     100    0\n"
      "  eth0:    1500      10    0    0    0     0          0         0     700       8    0\n"
      "  net1: 18446744 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
  EXPECT_EQ(read.received, 1500 + 18446744);
  EXPECT_EQ(read.sent, 705);
}

TEST(Network, OtherTextsAreNothing) {
  for (const char* text : {"", "\n\n", "eth0", "eth0:", "eth0: 1 2 3", "eth0: a b c d e f g h i"}) {
    EXPECT_EQ(parse_network(text).received + parse_network(text).sent, 0) << text;
  }
}

TEST(Network, TheMachinesOwnSaysNothingAboutAPod) {
  EXPECT_FALSE(read_network(::getpid()));
  EXPECT_FALSE(read_network(0));
  EXPECT_FALSE(read_network(1 << 30));
}

TEST(Network, OfAnotherNamespaceIsRead) {
  const std::string proc = ::testing::TempDir() + "skiff-net-" + std::to_string(::getpid());
  std::filesystem::create_directories(proc + "/7/ns");
  std::filesystem::create_directories(proc + "/7/net");
  std::ofstream(proc + "/7/ns/net") << "";
  std::ofstream(proc + "/7/net/dev") << "eth0: 5 0 0 0 0 0 0 0 6 0\n";
  const auto read = read_network(7, proc);
  std::filesystem::remove_all(proc);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->received, 5);
  EXPECT_EQ(read->sent, 6);
}

}  // namespace
}  // namespace skiff::node
