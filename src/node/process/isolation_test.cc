// What root pods may and may not see, and that nothing of them stays behind.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/strings.h"
#include "node/cgroup/cgroup.h"
#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

class IsolatedPod : public PodFixture {
 protected:
  // What the program printed, without the log's own words.
  std::string output(const std::string& uid, const std::string& name) {
    std::string out;
    const std::string text = logs(uid, name);
    for (const std::string_view line : split(text, '\n')) {
      if (line.size() > 40) out.append(line.substr(40)).push_back('\n');
    }
    return out;
  }

  std::string shell(const std::string& uid, const std::string& script, ContainerSpec spec = {}) {
    static int count = 0;
    spec.name = "c" + std::to_string(++count);
    spec.argv = {"sh", "-c", script};
    last_ = run(uid, spec);
    return output(uid, spec.name);
  }

  ContainerRecord last_ = {};
};

TEST_F(IsolatedPod, WritesStayInThePod) {
  const std::string file = folder() + "-seen";
  std::ofstream(file) << "the machine's\n";
  std::ofstream("/var/tmp/skiff-test-" + tag()) << "old\n";
  start_pod("p1");
  const std::string text =
      shell("p1", "echo new > /var/tmp/skiff-test-" + tag() + "; echo x > /etc/skiff-test-" +
                      tag() + "; rm /etc/passwd; cat /var/tmp/skiff-test-" + tag());
  EXPECT_EQ(text, "new\n");
  EXPECT_EQ(*read_file("/var/tmp/skiff-test-" + tag()), "old\n");
  EXPECT_FALSE(std::filesystem::exists("/etc/skiff-test-" + tag()));
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
  EXPECT_EQ(shell("p1", "cat /etc/skiff-test-" + tag()), "x\n") << "and are there next time";
  std::filesystem::remove("/var/tmp/skiff-test-" + tag());
  std::filesystem::remove(file);
}

TEST_F(IsolatedPod, TmpIsItsOwnAndMaskedFoldersAreEmpty) {
  const std::string secret = "/var/tmp/skiff-secret-" + tag();
  std::filesystem::create_directories(secret);
  std::ofstream(secret + "/key") << "key";
  const std::string link = "/var/tmp/skiff-link-" + tag();
  std::filesystem::create_directory_symlink(secret, link);
  start_pod("p1", {.masked = {link}});
  EXPECT_EQ(shell("p1", "ls -A /tmp; ls -A " + secret + "; touch /tmp/a " + secret + "/b 2>&1"),
            "touch: cannot touch '" + secret + "/b': Read-only file system\n");
  EXPECT_EQ(shell("p1", "ls /tmp"), "a\n");
  std::filesystem::remove_all(secret);
  std::filesystem::remove(link);
}

TEST_F(IsolatedPod, SeesOnlyItsOwnProcessesNameAndDevices) {
  start_pod("p1", {.hostname = "worker-0",
                   .resolv_conf = "nameserver 10.9.9.9\n",
                   .hosts = "127.0.0.1 localhost\n10.0.0.7 worker-1\n"});
  EXPECT_EQ(shell("p1",
                  "hostname; cat /etc/hostname /etc/resolv.conf; grep worker-1 /etc/hosts; "
                  "set -- /proc/[0-9]*; echo $#; head -c 3 /dev/zero | wc -c; "
                  "(echo > /proc/sys/kernel/hostname) 2>/dev/null || echo denied"),
            "worker-0\nworker-0\nnameserver 10.9.9.9\n10.0.0.7 worker-1\n2\n3\ndenied\n");
  EXPECT_EQ(shell("p1", "mount -t tmpfs none /mnt 2>/dev/null || echo denied"), "denied\n");
}

TEST_F(IsolatedPod, KernelSettingsOfItsOwnNamespacesAreAsItWantsThem) {
  start_pod("p1", {.sysctls = {{"kernel.shm_rmid_forced", "1"}}});
  EXPECT_EQ(shell("p1", "cat /proc/sys/kernel/shm_rmid_forced"), "1\n");
  start_pod("p2", {});
  EXPECT_EQ(shell("p2", "cat /proc/sys/kernel/shm_rmid_forced"), "0\n");
}

TEST_F(IsolatedPod, VolumesAreMountedInOrderWithTheirParents) {
  const std::string volumes = *runtime().pod_folder("p1") + "/volumes";
  std::filesystem::create_directories(volumes + "/data/inner");
  std::ofstream(volumes + "/data/a") << "data\n";
  std::ofstream(volumes + "/file") << "file\n";
  start_pod("p1", {.masked = {options().pods_folder}});
  const std::vector<Mount> mounts = {{volumes + "/data", "/skiff/deep/data", true},
                                     {volumes + "/file", "/skiff/deep/data/a", false},
                                     {volumes + "/data", "/skiff/rw", false}};
  EXPECT_EQ(shell("p1",
                  "cat /skiff/deep/data/a /skiff/rw/a; echo new > /skiff/rw/b; "
                  "(echo no > /skiff/deep/data/b) 2>/dev/null || echo read-only; "
                  "echo note > /dev/termination-log",
                  {.mounts = mounts}),
            "file\ndata\nread-only\n");
  EXPECT_EQ(*read_file(volumes + "/data/b"), "new\n");
  EXPECT_EQ(last_.message, "note\n");
  EXPECT_FALSE(std::filesystem::exists("/skiff/deep"));
}

TEST_F(IsolatedPod, AMaskedFolderIsCoveredInsideOfAVolumeToo) {
  const std::string home = *runtime().pod_folder("p1") + "/volumes/home";
  std::filesystem::create_directories(home + "/.data/pki");
  std::ofstream(home + "/train.py") << "mine\n";
  std::ofstream(home + "/.data/token") << "secret\n";
  start_pod("p1", {.masked = {home + "/.data"}});
  EXPECT_EQ(shell("p1",
                  "cat /home/me/train.py; ls -A /home/me/.data; echo kept > /home/me/model; "
                  "(echo x > /home/me/.data/x) 2>/dev/null || echo closed",
                  {.mounts = {{home, "/home/me", false}}}),
            "mine\nclosed\n");
  EXPECT_EQ(*read_file(home + "/model"), "kept\n");
}

TEST_F(IsolatedPod, AMountsSourceThatBecameALinkIsRefused) {
  const std::string volume = *runtime().pod_folder("p1") + "/volumes/data";
  std::filesystem::create_directories(volume);
  std::filesystem::create_directory_symlink("/etc", volume + "/sub");
  start_pod("p1");
  const auto record = run(
      "p1", {.name = "main", .argv = {"ls", "/mnt"}, .mounts = {{volume + "/sub", "/mnt", false}}});
  EXPECT_EQ(record.state, ContainerState::kFailedToStart);
  EXPECT_NE(record.message.find("symbolic links"), std::string::npos) << record.message;
}

TEST_F(IsolatedPod, LastWordsAreReadFromThePathThePodNames) {
  const std::string volume = *runtime().pod_folder("p1") + "/volumes/data";
  std::filesystem::create_directories(volume);
  start_pod("p1");
  (void)shell("p1", "echo bye > /data/last",
              {.mounts = {{volume, "/data", false}}, .termination_path = "/data/last"});
  EXPECT_EQ(last_.message, "bye\n");
}

TEST_F(IsolatedPod, RunsAsTheUserItWasGiven) {
  start_pod("p1");
  EXPECT_EQ(shell("p1", "id -u; id -G; grep NoNewPrivs /proc/self/status; touch /etc/x 2>&1",
                  {.uid = 1234, .gid = 567, .groups = {89, 90}}),
            "1234\n567 89 90\nNoNewPrivs:\t0\ntouch: cannot touch '/etc/x': Permission denied\n");
}

TEST_F(IsolatedPod, AnImagesFilesReplaceTheMachines) {
  const std::string root = folder() + "/image";
  for (const char* name : {"/bin", "/etc", "/lib64"}) {
    std::filesystem::create_directories(root + name);
  }
  std::filesystem::create_directories(root + "/usr");
  start_pod("p1");
  const std::vector<Mount> libraries = {{"/usr", "/usr", true},
                                        {std::filesystem::canonical("/lib64"), "/lib64", true}};
  std::filesystem::create_directory_symlink("usr/lib", root + "/lib");
  const auto record = run("p1", {.name = "main",
                                 .rootfs = root,
                                 .argv = {"/usr/bin/sh", "-c", "ls /; echo x > /new"},
                                 .mounts = libraries});
  EXPECT_EQ(record.exit_code, 0) << record.message;
  EXPECT_EQ(output("p1", "main"), "bin\ndev\netc\nlib\nlib64\nproc\nsys\ntmp\nusr\n");
  EXPECT_FALSE(std::filesystem::exists(root + "/new"));
}

TEST_F(IsolatedPod, LayersOfAnImageLieOverOneAnother) {
  // More than the options of a mount could name in full.
  std::vector<std::string> layers;
  for (int i = 0; i < 60; ++i) {
    const std::string layer = folder() + "/" + std::string(80, 'l') + std::to_string(i);
    std::filesystem::create_directories(layer + "/usr");
    std::filesystem::create_directories(layer + "/lib64");
    ASSERT_TRUE(write_plain(layer + "/all", std::to_string(i) + "\n"));
    ASSERT_TRUE(write_plain(layer + "/from-" + std::to_string(i), ""));
    layers.push_back(layer);
  }
  ASSERT_EQ(::mknod((layers[0] + "/from-1").c_str(), S_IFCHR, ::makedev(0, 0)), 0);
  std::filesystem::create_directories(layers[3] + "/tmp");
  ASSERT_TRUE(write_plain(layers[3] + "/tmp/seed", "own tmp\n"));
  start_pod("p1");
  const std::vector<Mount> libraries = {{"/usr", "/usr", true},
                                        {std::filesystem::canonical("/lib64"), "/lib64", true}};
  std::filesystem::create_directory_symlink("usr/lib", layers[0] + "/lib");
  const ContainerSpec spec{
      .name = "main",
      .layers = layers,
      .argv = {"/usr/bin/sh", "-c",
               "/usr/bin/cat /all /tmp/seed; ls / | grep -c from; echo x > /new; pwd; "
               "cat /etc/resolv.conf; (echo x > /etc/resolv.conf) 2>/dev/null || echo kept"},
      .working_dir = "/made/for/it",
      .mounts = libraries};
  const auto record = run("p1", spec);
  EXPECT_EQ(record.exit_code, 0) << record.message;
  // Where the pod has no resolver of its own, it is the machine's.
  EXPECT_EQ(output("p1", "main"), "0\nown tmp\n59\n/made/for/it\n" +
                                      read_file("/etc/resolv.conf").value_or("") + "kept\n");
  for (const std::string& layer : layers) {
    EXPECT_FALSE(std::filesystem::exists(layer + "/new"));
    EXPECT_FALSE(std::filesystem::exists(layer + "/made"));
  }
}

TEST_F(IsolatedPod, WhereThePodsFolderIsOnAnOverlayWritesGoToMemory) {
  const std::string base = folder() + "/engine";
  for (const char* name : {"/lower", "/upper", "/work", "/pods"}) {
    std::filesystem::create_directories(base + name);
  }
  const std::string layers =
      "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work";
  ASSERT_EQ(::mount("overlay", (base + "/pods").c_str(), "overlay", 0, layers.c_str()), 0);
  ProcessOptions there = options();
  there.pods_folder = base + "/pods";
  {
    const auto other = make_process_runtime(there);
    const auto made = other->start_sandbox({.pod_uid = "p1"});
    EXPECT_TRUE(made) << made.error().message;
    const auto started = other->start_container(
        "p1", {.name = "main", .argv = {"sh", "-c", "mkdir /skiff-new && ls -d /skiff-new /etc"}});
    EXPECT_TRUE(started) << started.error().message;
    while (other->inspect("p1")->containers.at(0).state == ContainerState::kRunning) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(other->inspect("p1")->containers.at(0).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists("/skiff-new"));
    EXPECT_TRUE(other->remove_sandbox("p1"));
  }
  EXPECT_EQ(::umount((base + "/pods").c_str()), 0);
}

TEST_F(IsolatedPod, TooMuchMemoryIsAnOomKill) {
  start_pod("p1");
  const auto record = run("p1", {.name = "main",
                                 .argv = {"sh", "-c", "head -c 300m /dev/zero | tail -c 300m"},
                                 .memory_limit_bytes = 32 << 20});
  EXPECT_EQ(record.exit_code, 137);
  EXPECT_TRUE(record.oom_killed);
}

TEST_F(IsolatedPod, NoControlGroupIsLeftAfterTheNetworkIsReleased) {
  ProcessOptions there = options();
  there.pods_folder = folder() + "/others";
  there.subnet = "";
  const std::string uid = "left-" + tag();
  std::string group;
  {
    const auto other = make_process_runtime(there);
    const auto made = other->start_sandbox({.pod_uid = uid});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->ip.starts_with("127.")) << made->ip;
    ASSERT_TRUE(other->start_container(uid, {.name = "main", .argv = {"sleep", "1000"}}));
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(Cgroups::detect().folder("memory", ""), error)) {
      if (std::filesystem::exists(entry.path() / ("pod" + uid))) group = entry.path();
    }
    EXPECT_FALSE(group.empty());
    EXPECT_TRUE(other->stop_sandbox(uid));  // its folder stays, for the logs
  }
  EXPECT_TRUE(release_network(there));
  EXPECT_FALSE(std::filesystem::exists(group)) << group;
}

TEST_F(IsolatedPod, CpuLimitsReachTheKernel) {
  start_pod("p1");
  ASSERT_TRUE(runtime().start_container("p1", {.name = "main",
                                               .argv = {"sleep", "1000"},
                                               .cpu_limit_milli = 1500,
                                               .cpu_request_milli = 500}));
  const Cgroups groups = Cgroups::detect();
  std::string found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(groups.folder("cpu", ""), error)) {
    const std::string path = entry.path().native() + "/podp1/main/";
    const auto text = read_file(path + (groups.is_v2() ? "cpu.max" : "cpu.cfs_quota_us"));
    if (text) found = *text;
  }
  EXPECT_EQ(found, groups.is_v2() ? "150000 100000\n" : "150000\n");
}

TEST_F(IsolatedPod, PodsOnTheSamePortReachEachOtherByAddress) {
  const std::string server =
      "import socket,sys\n"
      "s=socket.create_server(('0.0.0.0',2222))\n"
      "print('up',flush=True)\n"
      "c,a=s.accept(); c.sendall(sys.argv[1].encode()+b' '+a[0].encode()); c.close()\n";
  const auto one = start_pod("p1");
  const auto two = start_pod("p2");
  for (const char* uid : {"p1", "p2"}) {
    ASSERT_TRUE(runtime().start_container(
        uid, {.name = "main", .argv = {"/usr/bin/python3", "-c", server, uid}}));
  }
  wait_log("p1", "main", "up");
  wait_log("p2", "main", "up");
  const auto client = [](const std::string& ip) {
    return ContainerSpec{.name = "ask",
                         .argv = {"/usr/bin/python3", "-c",
                                  "import socket;print(socket.create_connection(('" + ip +
                                      "',2222),5).recv(99).decode())"}};
  };
  EXPECT_EQ(run("p1", client(two.ip)).exit_code, 0) << logs("p1", "ask");
  EXPECT_EQ(output("p1", "ask"), "p2 " + one.ip + "\n");
  EXPECT_EQ(run("p2", client(one.ip)).exit_code, 0) << logs("p2", "ask");
  EXPECT_EQ(output("p2", "ask"), "p1 " + two.ip + "\n");
}

TEST_F(IsolatedPod, AVolumeInMemoryIsSharedByContainersAndOutlivesThem) {
  start_pod("p1");
  const std::string volume = *runtime().pod_folder("p1") + "/volumes/v";
  std::filesystem::create_directories(volume);
  // As it is made for a pod with a group of its own.
  ASSERT_EQ(::chown(volume.c_str(), 0, 1234), 0);
  ASSERT_EQ(::chmod(volume.c_str(), 02777), 0);
  const auto mounted = [&](std::string name, std::string script, std::string inside = {}) {
    return ContainerSpec{.name = std::move(name),
                         .argv = {"sh", "-c", std::move(script)},
                         .mounts = {{.source = volume,
                                     .target = "/mem",
                                     .memory_bytes = 64 << 10,
                                     .inside = std::move(inside)}}};
  };
  run("p1", mounted("one",
                    "stat -f -c %T /mem; stat -c '%a %g' /mem; echo hello > /mem/f; mkdir /mem/d;"
                    "ln -s /etc /mem/out; head -c 1000000 /dev/zero > /mem/big 2>/dev/null; echo "
                    "$?; rm /mem/big"));
  EXPECT_EQ(output("p1", "one"), "tmpfs\n2777 1234\n1\n") << logs("p1", "one");
  restart_runtime();
  run("p1", mounted("two", "cat /mem/f"));
  EXPECT_EQ(output("p1", "two"), "hello\n");
  run("p1", mounted("part", "echo in > /mem/f; ls /mem", "d"));
  EXPECT_EQ(output("p1", "part"), "f\n");
  run("p1", mounted("three", "cat /mem/d/f"));
  EXPECT_EQ(output("p1", "three"), "in\n");
  // A link that the pod made leads nowhere but into the volume.
  const ContainerRecord out = run("p1", mounted("four", "ls /mem | grep -c passwd", "out"));
  EXPECT_NE(out.exit_code, 0) << logs("p1", "four");
  // Nothing of it is on the machine, neither files nor a mount.
  EXPECT_TRUE(std::filesystem::is_empty(volume));
}

// What the pods of one test have of the machine; those of other programs come and go meanwhile.
struct Traces {
  int shims = 0, links = 0, mounts = 0, groups = 0;
};

Traces traces(const ProcessOptions& options, const std::vector<std::string>& pods,
              const std::function<int(const std::string&)>& processes_named) {
  namespace fs = std::filesystem;
  Traces out;
  std::error_code error;
  for (const std::string& uid : pods) out.shims += processes_named(options.pods_folder + "/" + uid);
  // The network is the test's own, so every link is.
  const std::string links = read_file("/proc/net/dev").value_or("");
  out.links = static_cast<int>(std::count(links.begin(), links.end(), '\n'));
  const std::string mounts = read_file("/proc/self/mountinfo").value_or("");
  for (const std::string_view line : split(mounts, '\n')) {
    out.mounts += line.find(options.pods_folder) != line.npos;
  }
  for (const auto& entry : fs::recursive_directory_iterator("/sys/fs/cgroup", error)) {
    for (const std::string& uid : pods) out.groups += entry.path().filename() == "pod" + uid;
  }
  return out;
}

TEST_F(IsolatedPod, NothingIsLeftBehind) {
  const std::vector<std::string> pods = {"a" + tag(), "b" + tag(), "c" + tag()};
  const auto now = [&] { return traces(options(), pods, processes_named); };
  const Traces before = now();
  EXPECT_EQ(before.shims, 0);
  const std::string mark = "86396." + tag();
  for (const std::string& uid : pods) {
    start_pod(uid);
    const std::string volume = *runtime().pod_folder(uid) + "/volumes/v";
    std::filesystem::create_directories(volume);
    ASSERT_TRUE(runtime().start_container(
        uid, {.name = "main",
              .argv = {"sh", "-c", "(setsid sleep " + mark + " &); echo up; exec sleep " + mark},
              .mounts = {{.source = volume, .target = "/mem", .memory_bytes = 64 << 10}}}));
    wait_log(uid, "main", "up");
  }
  kill_shim(pods[2]);
  EXPECT_GE(now().shims, 2);
  EXPECT_GE(now().links, before.links + 2);
  for (const std::string& uid : pods) ASSERT_TRUE(runtime().stop_sandbox(uid));
  EXPECT_EQ(processes_named(mark), 0);
  const Traces after = now();
  EXPECT_EQ(after.shims, 0);
  EXPECT_EQ(after.links, before.links);
  EXPECT_EQ(after.mounts, before.mounts);
  EXPECT_EQ(after.groups, 0);
}

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_F(IsolatedPod, AShimIsSmall) {
  start_pod("p1");
  ASSERT_TRUE(runtime().start_container("p1", {.name = "main", .argv = {"sleep", "1000"}}));
  const auto connection = connect_shim(*runtime().pod_folder("p1"));
  ASSERT_TRUE(connection);
  const auto rollup =
      read_file("/proc/" + std::to_string(*shim_pid(*connection)) + "/smaps_rollup");
  ASSERT_TRUE(rollup);
  const auto kilobytes = [&](const std::string& key) {
    const std::size_t at = rollup->find("\n" + key + ":");
    return at == rollup->npos ? -1 : std::atol(rollup->c_str() + at + key.size() + 2);
  };
  RecordProperty("pss_kb", static_cast<int>(kilobytes("Pss")));
  EXPECT_GT(kilobytes("Pss"), 0);
  // A sanitizer's shadow is not the shim's own.
  if (!kSanitized) EXPECT_LT(kilobytes("Pss"), 2048);
}

}  // namespace
}  // namespace skiff::node
