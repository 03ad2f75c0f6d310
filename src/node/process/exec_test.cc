// Programs run beside a container's own, in real pods.
#include "node/health/exec.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AnyExec : public PodFixture, public testing::WithParamInterface<bool> {
 protected:
  bool privileged() const override { return GetParam(); }

  void start(const std::string& uid) {
    start_pod(uid);
    const auto started =
        runtime().start_container(uid, {.name = "main",
                                        .argv = {"sh", "-c", "echo up; exec sleep 600"},
                                        .env = {"PATH=/usr/bin:/bin", "COLOR=blue"},
                                        .working_dir = "/usr"});
    ASSERT_TRUE(started) << started.error().message;
    wait_log(uid, "main", "up");
  }

  ExecOutput exec(const std::string& uid, std::vector<std::string> argv,
                  milliseconds timeout = seconds(20)) {
    return exec_and_read(runtime(), uid, {.container = "main", .argv = std::move(argv)}, timeout,
                         {});
  }
};

TEST_P(AnyExec, AProgramRunsWithTheContainersEnvironmentAndFolder) {
  start("p1");
  const auto done = exec("p1", {"sh", "-c", "echo $COLOR; pwd; echo problem >&2; exit 3"});
  ASSERT_TRUE(done.exit_code) << done.exit_code.error().message;
  EXPECT_EQ(*done.exit_code, 3);
  EXPECT_EQ(done.output, "blue\n/usr\nproblem\n");
}

TEST_P(AnyExec, WhatIsGivenReplacesWhatTheContainerHas) {
  start("p1");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "typed", 5), 5);
  ::close(ends[1]);
  const auto done = exec_and_read(runtime(), "p1",
                                  {.container = "main",
                                   .argv = {"sh", "-c", "echo $COLOR; pwd; cat"},
                                   .env = std::vector<std::string>{"COLOR=red"},
                                   .working_dir = "/",
                                   .in_fd = ends[0]},
                                  seconds(20), {});
  ::close(ends[0]);
  ASSERT_TRUE(done.exit_code) << done.exit_code.error().message;
  EXPECT_EQ(done.output, "red\n/\ntyped");
}

TEST_P(AnyExec, AMissingProgramIsAnErrorAndNoExitCode) {
  start("p1");
  const auto done = exec("p1", {"no-such-program"});
  ASSERT_FALSE(done.exit_code);
  EXPECT_NE(done.exit_code.error().message.find("no-such-program"), std::string::npos)
      << done.exit_code.error().message;
}

TEST_P(AnyExec, AContainerThatDoesNotRunIsAnError) {
  start("p1");
  const auto done =
      exec_and_read(runtime(), "p1", {.container = "other", .argv = {"true"}}, seconds(20), {});
  ASSERT_FALSE(done.exit_code);
  EXPECT_EQ(done.exit_code.error().code, Code::kNotFound);
}

TEST_P(AnyExec, ATimeOutKillsTheProgramAndNotTheContainer) {
  start("p1");
  const std::string mark = "31" + tag();
  const auto done = exec("p1", {"sleep", mark}, milliseconds(300));
  ASSERT_FALSE(done.exit_code);
  EXPECT_EQ(done.exit_code.error().code, Code::kTimeout);
  for (int i = 0; i < 12'000 && processes_named(mark) > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(processes_named(mark), 0);
  EXPECT_EQ(*exec("p1", {"true"}).exit_code, 0);
}

TEST_P(AnyExec, TheEndOfTheContainerIsTheEndOfTheProgram) {
  start("p1");
  const auto session = runtime().exec("p1", {.container = "main", .argv = {"sleep", "32" + tag()}});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE(runtime().signal("p1", "main", SIGKILL));
  pollfd wait{.fd = (*session)->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
  const auto ended = (*session)->ended();
  ASSERT_TRUE(ended);
  if (*ended) EXPECT_EQ(**ended, 137);
  wait_exit("p1", "main");
}

TEST_P(AnyExec, OutputWithoutEndIsCutAndNobodyBlocks) {
  start("p1");
  const auto done = exec("p1", {"sh", "-c", "head -c 3000000 /dev/zero; exit 4"});
  ASSERT_TRUE(done.exit_code) << done.exit_code.error().message;
  EXPECT_EQ(*done.exit_code, 4);
  EXPECT_EQ(done.output.size(), kExecOutputBytes);
}

INSTANTIATE_TEST_SUITE_P(Plain, AnyExec, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Root, AnyExec, ::testing::Values(true));

class IsolatedExec : public PodFixture {};

TEST_F(IsolatedExec, TheProgramSeesTheContainersFilesAndProcessesOnly) {
  start_pod("p1");
  const auto started = runtime().start_container(
      "p1", {.name = "main",
             .argv = {"sh", "-c", "echo secret > /tmp/mine; echo up; exec sleep 601"},
             .env = {"PATH=/usr/bin:/bin"},
             .uid = 1234,
             .gid = 1234});
  ASSERT_TRUE(started);
  wait_log("p1", "main", "up");
  const auto done = exec_and_read(
      runtime(), "p1",
      {.container = "main",
       .argv = {"sh", "-c",
                "cat /tmp/mine; id -u; hostname; ls /proc > /tmp/all; grep -c '^[0-9]' /tmp/all"}},
      seconds(20), {});
  ASSERT_TRUE(done.exit_code) << done.exit_code.error().message;
  const std::string expected = "secret\n1234\np1\n";
  ASSERT_TRUE(done.output.starts_with(expected)) << done.output;
  // Init, sleep, the shell and ls.
  EXPECT_EQ(done.output.substr(expected.size()), "4\n");
}

}  // namespace
}  // namespace skiff::node
