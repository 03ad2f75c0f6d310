// What programs in real pods may do. Needs root, as isolation_test.cc does.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/strings.h"
#include "node/cgroup/cgroup.h"
#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

class PodRights : public PodFixture {
 protected:
  std::string shell(const std::string& script, ContainerSpec spec = {}) {
    spec.name = "c" + std::to_string(++count_);
    spec.argv = {"sh", "-c", script};
    run("p1", spec);
    std::string out;
    const std::string text = logs("p1", spec.name);
    for (const std::string_view line : split(text, '\n')) {
      if (line.size() > 40) out.append(line.substr(40)).push_back('\n');
    }
    return out;
  }

  // The effective capabilities of a program with this specification.
  Capabilities effective(ContainerSpec spec) {
    const std::string text = shell("grep CapEff /proc/self/status", std::move(spec));
    return std::strtoull(text.substr(std::min<std::size_t>(8, text.size())).c_str(), nullptr, 16);
  }

 private:
  int count_ = 0;
};

TEST_F(PodRights, CapabilitiesAreThoseItWasGiven) {
  start_pod("p1");
  EXPECT_EQ(effective({}), kDefaultCapabilities);
  EXPECT_EQ(effective({.capabilities = 0}), 0U);
  const Capabilities chown = capability(CAP_CHOWN);
  EXPECT_EQ(effective({.capabilities = chown}), chown);
  EXPECT_EQ(effective({.capabilities = chown, .no_new_privileges = true}), chown);
  EXPECT_EQ(effective({.uid = 1234}), 0U) << "who is not root has none";
  const Capabilities admin = kDefaultCapabilities | capability(CAP_SYS_ADMIN);
  EXPECT_EQ(shell("mount -t tmpfs none /mnt && echo mounted", {.capabilities = admin}),
            "mounted\n");
}

TEST_F(PodRights, NoNewPrivilegesHoldsForTheProgramAndItsChildren) {
  start_pod("p1");
  EXPECT_EQ(shell("grep NoNewPrivs /proc/self/status", {.no_new_privileges = true}),
            "NoNewPrivs:\t1\n");
}

TEST_F(PodRights, AUserThatNobodyKnowsIsInTheRootGroupAndMayUseItsOutput) {
  start_pod("p1");
  EXPECT_EQ(shell("id -u; id -G; echo by name > /dev/stdout", {.uid = 54321}),
            "54321\n0\nby name\n");
}

TEST_F(PodRights, AReadOnlyRootLeavesVolumesWritable) {
  const std::string volume = *runtime().pod_folder("p1") + "/volumes/data";
  std::filesystem::create_directories(volume);
  start_pod("p1");
  const std::string script =
      "for at in /etc /tmp /usr /srv/new/data /dev/shm; do "
      "touch $at/x 2>/dev/null && echo $at; done; true";
  ContainerSpec spec{.mounts = {{volume, "/srv/new/data", false}}};
  EXPECT_EQ(shell(script, spec), "/etc\n/tmp\n/usr\n/srv/new/data\n/dev/shm\n");
  spec.read_only_root = true;
  EXPECT_EQ(shell(script, spec), "/srv/new/data\n/dev/shm\n");
  spec.read_only_root = false;
  EXPECT_EQ(shell(script, spec), "/etc\n/tmp\n/usr\n/srv/new/data\n/dev/shm\n")
      << "other containers of the pod are not concerned";
}

TEST_F(PodRights, APrivilegedContainerSeesDevicesAndMayChangeTheKernelsSettings) {
  start_pod("p1");
  const std::string script =
      "cat /proc/sys/net/ipv4/ip_forward > /tmp/now; "
      "(cat /tmp/now > /proc/sys/net/ipv4/ip_forward) 2>/dev/null && echo may || echo may not";
  EXPECT_EQ(shell(script), "may not\n");
  EXPECT_EQ(shell(script, {.capabilities = kAllCapabilities, .privileged = true}), "may\n");
  // One that every container has, or a device that only the machine has.
  for (const char* name : {"kmsg", "loop-control", "fuse"}) {
    const std::string path = std::string("/dev/") + name;
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) continue;
    const std::string look = "[ -c " + path + " ] && echo there || echo not there";
    EXPECT_EQ(shell(look), "not there\n") << path;
    EXPECT_EQ(shell(look, {.capabilities = kAllCapabilities, .privileged = true}), "there\n")
        << path;
  }
}

TEST_F(PodRights, TheKernelIsToldWhomToKillFirst) {
  start_pod("p1");
  EXPECT_EQ(shell("cat /proc/self/oom_score_adj", {.oom_score_adj = 900}), "900\n");
  // Lowering it takes a capability that engines inside of others do not have.
  const auto before = read_file("/proc/self/oom_score_adj");
  if (!write_plain("/proc/self/oom_score_adj", "-998")) return;
  EXPECT_TRUE(write_plain("/proc/self/oom_score_adj", *before));
  EXPECT_EQ(shell("cat /proc/self/oom_score_adj", {.oom_score_adj = -997}), "-997\n");
}

TEST_F(PodRights, AProgramThatForksWithoutEndHarmsOnlyItself) {
  const Cgroups groups = Cgroups::detect();
  if (!groups.is_v2() && !std::filesystem::exists("/sys/fs/cgroup/pids/tasks")) {
    GTEST_SKIP() << "no control groups for processes";
  }
  start_pod("p1");
  // Every process that could be made says so; none is left of them when the container ends.
  const std::string said = shell(
      "i=0; while [ $i -lt 200 ]; do (sleep 1000 & echo made) 2>/dev/null || break; i=$((i+1)); "
      "done; true",
      {.pids_limit = 40});
  const auto made = std::count(said.begin(), said.end(), '\n');
  EXPECT_GT(made, 10);
  EXPECT_LT(made, 40);
  EXPECT_EQ(shell("echo others go on"), "others go on\n");
}

}  // namespace
}  // namespace skiff::node
