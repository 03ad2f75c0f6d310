#include "node/streams/pod_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "env/env.h"
#include "node/fake_runtime.h"
#include "node/shim/files.h"

namespace skiff::node {
namespace {

using apiserver::Peer;

class StillClock final : public env::Clock {
 public:
  Time now() const override { return Time{}; }
  Duration elapsed() const override { return {}; }
};

// Asks a peer as the network does: again when it was woken.
struct Asker {
  std::mutex mutex = {};
  std::condition_variable woken = {};
  int wakes = 0;

  // All it says, to its end.
  std::string read_all(Peer& peer) {
    std::string out;
    while (true) {
      std::unique_lock lock(mutex);
      const int before = wakes;
      lock.unlock();
      std::vector<Peer::Piece> pieces;
      const bool more = peer.read(pieces, [this] {
        const std::lock_guard own(mutex);
        ++wakes;
        woken.notify_all();
      });
      for (const Peer::Piece& piece : pieces) out += piece.bytes;
      if (!more) return out;
      if (!pieces.empty()) continue;
      lock.lock();
      if (!woken.wait_for(lock, std::chrono::seconds(20), [&] { return wakes != before; })) {
        ADD_FAILURE() << "nobody was woken";
        return out;
      }
    }
  }
};

// The tests listen themselves where a program of a pod would.
bool nobodys(int, int) { return false; }

class PodPeers : public ::testing::Test {
 protected:
  PodPeers()
      : folder_(::testing::TempDir() + "skiff-peers-" + std::to_string(::getpid())),
        runtime_(clock_, folder_, [](std::string_view, std::string_view, int) {
          return FakeRuntime::Script{.forever = true};
        }) {
    EXPECT_TRUE(runtime_.start_sandbox({.pod_uid = "u", .pod_name = "p"}));
    EXPECT_TRUE(runtime_.start_container("u", {.name = "main"}));
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~PodPeers() override { std::filesystem::remove_all(folder_); }

  // Says everything back when its client has ended.
  std::jthread echo_once() {
    return std::jthread([this] {
      const Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::string all;
      char piece[4096];
      ssize_t n = 0;
      while ((n = ::read(peer.get(), piece, sizeof piece)) > 0) {
        all.append(piece, static_cast<std::size_t>(n));
      }
      (void)write_all(peer.get(), all);
    });
  }

  const StillClock clock_ = {};
  const std::string folder_;
  FakeRuntime runtime_;
  Fd listener_ = {};
  int port_ = 0;
};

TEST_F(PodPeers, APortTakesAndGivesAndEndsWithBothSides) {
  const std::jthread echo = echo_once();
  const auto peer = open_port(runtime_, "u", port_, nobodys);
  const std::string text(1'000'000, 'x');
  peer->write("first ");
  peer->write(text);
  peer->end_input();
  Asker asker;
  EXPECT_EQ(asker.read_all(*peer), "first " + text);
  ASSERT_TRUE(peer->exit_code());
  EXPECT_EQ(peer->backlog(), 0U);
}

TEST_F(PodPeers, APortThatNobodyListensAtIsAnError) {
  listener_.reset();
  const auto peer = open_port(runtime_, "u", port_, nobodys);
  Asker asker;
  EXPECT_EQ(asker.read_all(*peer), "");
  const auto end = peer->exit_code();
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("Connection refused"), std::string::npos);
}

TEST_F(PodPeers, APortOfSkiffItselfIsNotDialledInAPodsName) {
  const auto peer = open_port(runtime_, "u", port_);
  peer->write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Asker asker;
  EXPECT_EQ(asker.read_all(*peer), "");
  const auto end = peer->exit_code();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "port " + std::to_string(port_) +
                                     " is Skiff's own: this pod shares the machine's network, and "
                                     "Skiff is not asked in a pod's name");
  ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  EXPECT_LT(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);  // nobody came
}

TEST_F(PodPeers, SkiffsOwnPortsAreThoseWhereItListens) {
  const Fd asking(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(skiffs_own(asking.get(), port_));
  // A port of both families.
  const Fd both(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  socklen_t size = sizeof at;
  if (both.valid() && ::bind(both.get(), reinterpret_cast<sockaddr*>(&at), size) == 0) {
    ASSERT_EQ(::getsockname(both.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    const int port = ntohs(at.sin6_port);
    EXPECT_FALSE(skiffs_own(asking.get(), port));  // taken, but nobody listens
    ASSERT_EQ(::listen(both.get(), 1), 0);
    EXPECT_TRUE(skiffs_own(asking.get(), port));
  }
  listener_.reset();
  EXPECT_FALSE(skiffs_own(asking.get(), port_));
}

TEST_F(PodPeers, APortOfAnotherNetworkIsNotSkiffsOwn) {
  int number = -1, problem = 0;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) problem = errno;
    number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }).join();
  const Fd theirs(number);
  if (problem != 0) GTEST_SKIP() << "needs root";
  EXPECT_FALSE(skiffs_own(theirs.get(), port_));
}

TEST_F(PodPeers, WhoeverHangsUpWaitsForNobody) {
  for (int i = 0; i < 20; ++i) {
    const auto peer = open_port(runtime_, "u", port_, nobodys);  // nobody accepts
    peer->write("x");
  }
}

TEST_F(PodPeers, AProgramSaysItsWordsBeforeItsEnd) {
  runtime_.execute_with([](std::string_view, const ExecSpec& spec) {
    return FakeRuntime::Told{.exit_code = 3, .output = spec.argv.at(0) + " ran"};
  });
  auto peer = open_program(runtime_, "u",
                           {.container = "main", .command = {"it"}, .out = true, .err = true});
  ASSERT_TRUE(peer) << peer.error().message;
  Asker asker;
  EXPECT_EQ(asker.read_all(**peer), "it ran");
  const auto end = (*peer)->exit_code();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, 3);
  EXPECT_FALSE(open_program(runtime_, "u", {.container = "other", .command = {"it"}}));
}

}  // namespace
}  // namespace skiff::node
