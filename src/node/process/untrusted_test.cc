#include "node/process/untrusted.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "node/shim/shim.h"

namespace skiff::node {
namespace {

TEST(Untrusted, ControlGroupsOfPodsAreFoundInBothVersions) {
  using Groups = std::set<std::string>;
  EXPECT_EQ(pod_groups("0::/skiff-0a1b2c3d/pod11-22/main\n"),
            Groups{"0::/skiff-0a1b2c3d/pod11-22"});
  EXPECT_EQ(pod_groups("4:memory:/docker/x/skiff-0a1b2c3d/podu/main\n1:cpu:/\n"),
            Groups{"4:memory:/docker/x/skiff-0a1b2c3d/podu"});
  EXPECT_EQ(pod_groups("0::/../../skiff-0a1b2c3d/podu\n"), Groups{"0::/../../skiff-0a1b2c3d/podu"});
  EXPECT_EQ(pod_groups("0::/user.slice/skiff-0a1b2c3d\n0::/skiff-x/podu\n0::/pod1\n0::/\n"),
            Groups{});
}

TEST(Untrusted, AServerIsSkiffThatIsUp) {
  using std::string_view_literals::operator""sv;
  EXPECT_TRUE(is_server("/usr/bin/skiff", "skiff\0up\0-d\0"sv));
  EXPECT_TRUE(is_server("/opt/skiff-2 (deleted)", "./s\0--data\0/x\0up\0"sv));
  EXPECT_FALSE(is_server("/usr/bin/skiff", "skiff\0get\0pods\0"sv));
  EXPECT_FALSE(is_server("/usr/bin/docker-compose", "docker-compose\0up\0"sv));
}

TEST(Untrusted, ThisProcessAndItsChildrenAre) {
  EXPECT_TRUE(is_untrusted(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  EXPECT_TRUE(is_untrusted(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_untrusted(child)) << "it is gone";
}

// A process with a child, neither of them a descendant of this one; the child's number.
pid_t stray_child(const char* parent_name) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t first = ::fork();
  if (first == 0) {
    if (::fork() != 0) ::_exit(0);
    ::prctl(PR_SET_NAME, parent_name);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(60);
      while (true) ::pause();
    }
    const pid_t both[2] = {child, parent};
    (void)!::write(pipe[1], both, sizeof both);
    ::alarm(60);
    while (true) ::pause();
  }
  ::waitpid(first, nullptr, 0);
  pid_t both[2] = {};
  EXPECT_EQ(::read(pipe[0], both, sizeof both), static_cast<ssize_t>(sizeof both));
  ::close(pipe[0]);
  ::close(pipe[1]);
  return both[0];
}

pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string ignored;
  pid_t parent = 0;
  file >> ignored >> ignored >> ignored >> parent;
  return parent;
}

TEST(Untrusted, WhoeverDescendsFromAShimIsOfAPodWhoeverStartedTheShim) {
  for (const bool pod : {true, false}) {
    const pid_t child = stray_child(pod ? kShimName : "somebody");
    EXPECT_EQ(is_untrusted(child), pod);
    ::kill(parent_of(child), SIGKILL);  // and the child with it
  }
}

}  // namespace
}  // namespace skiff::node
