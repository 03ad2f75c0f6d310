// Talking to a container's own program, and to its ports, in real pods.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/process/pod_fixture.h"

namespace skiff::node {
namespace {

struct Listener {
  Fd out = {}, err = {};  // to read from
  Fd out_end = {}, err_end = {};

  Listener() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out.reset(ends[0]);
    out_end.reset(ends[1]);
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    err.reset(ends[0]);
    err_end.reset(ends[1]);
  }
  void close_ends() {
    out_end.reset();
    err_end.reset();
  }
};

// Up to the end, or `wanted`.
std::string read_until(const Fd& fd, std::string_view wanted) {
  std::string text;
  while (wanted.empty() || text.find(wanted) == text.npos) {
    pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 20'000) <= 0) return text + " (and then silence)";
    char piece[4096];
    const ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
  return text;
}

class AnyAttach : public PodFixture, public testing::WithParamInterface<bool> {
 protected:
  bool privileged() const override { return GetParam(); }

  void start(ContainerSpec spec) {
    start_pod("p1");
    spec.name = "main";
    spec.env = {"PATH=/usr/bin:/bin"};
    const auto started = runtime().start_container("p1", spec);
    ASSERT_TRUE(started) << started.error().message;
  }
  Fd attach(Listener& listener) {
    const auto input =
        runtime().attach("p1", "main", true, listener.out_end.get(), listener.err_end.get());
    EXPECT_TRUE(input) << input.error().message;
    listener.close_ends();
    return Fd(input ? *input : -1);
  }
};

TEST_P(AnyAttach, InputReachesTheProgramAndItsWordsEveryListenerAndTheLog) {
  start({.argv = {"sh", "-c", "while read x; do echo got $x; echo bad $x >&2; done"},
         .stdin_open = true,
         .stdin_once = true});
  Listener first, second;
  Fd input = attach(first);
  ASSERT_TRUE(input.valid());
  EXPECT_FALSE(attach(second).valid()) << "input can be had once";
  ASSERT_TRUE(write_all(input.get(), "one\n"));
  EXPECT_EQ(read_until(first.out, "\n"), "got one\n");
  EXPECT_EQ(read_until(second.out, "\n"), "got one\n");
  EXPECT_EQ(read_until(first.err, "\n"), "bad one\n");
  input.reset();  // the end of its input
  EXPECT_EQ(wait_exit("p1", "main").exit_code, 0);
  EXPECT_EQ(read_until(first.out, ""), "") << "the end of its output";
  EXPECT_NE(logs("p1", "main").find("stdout F got one\n"), std::string::npos);
}

TEST_P(AnyAttach, WithoutOnceInputStaysOpenForTheNext) {
  start({.argv = {"sh", "-c", "read x; read y; echo $x $y"}, .stdin_open = true});
  Listener listener;
  ASSERT_TRUE(write_all(attach(listener).get(), "one\n"));
  Listener next;
  ASSERT_TRUE(write_all(attach(next).get(), "two\n"));
  EXPECT_EQ(wait_exit("p1", "main").exit_code, 0);
  EXPECT_NE(logs("p1", "main").find("one two"), std::string::npos);
}

TEST_P(AnyAttach, ATerminalIsOneAndSaysItsWordsOnce) {
  start({.argv = {"sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo terminal; cat"},
         .stdin_open = true,
         .stdin_once = true,
         .tty = true});
  Listener listener;
  const Fd input = attach(listener);
  ASSERT_TRUE(write_all(input.get(), "typed\n\x04"));
  EXPECT_EQ(wait_exit("p1", "main").exit_code, 0);
  EXPECT_NE(logs("p1", "main").find("terminal"), std::string::npos);
  EXPECT_NE(read_until(listener.out, "").find("typed"), std::string::npos);
}

TEST_P(AnyAttach, AListenerThatDoesNotReadHoldsNobodyUp) {
  start({.argv = {"sh", "-c", "read x; head -c 5000000 /dev/zero; echo done"}, .stdin_open = true});
  Listener listener;
  const Fd input = attach(listener);
  ASSERT_TRUE(write_all(input.get(), "go\n"));
  EXPECT_EQ(wait_exit("p1", "main").exit_code, 0);
  EXPECT_NE(logs("p1", "main").find("done"), std::string::npos);
}

TEST_P(AnyAttach, WhatDoesNotRunCannotBeAttachedTo) {
  start({.argv = {"true"}});
  wait_exit("p1", "main");
  Listener listener;
  const auto input =
      runtime().attach("p1", "main", true, listener.out_end.get(), listener.err_end.get());
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().code, Code::kNotFound);
}

std::uint64_t network_of(const Fd& socket) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size), 0);
  return cookie;
}

TEST_P(AnyAttach, ASocketOfThePodIsInItsNetwork) {
  start({.argv = {"sleep", "600"}});
  const auto number = runtime().open_socket("p1");
  ASSERT_TRUE(number) << number.error().message;
  const Fd theirs(*number), ours(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(network_of(theirs) != network_of(ours), privileged());
}

INSTANTIATE_TEST_SUITE_P(Pods, AnyAttach, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Isolated" : "Plain"; });

}  // namespace
}  // namespace skiff::node
