#include "node/loopback/calls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "node/shim/descriptors.h"

namespace skiff::node {
namespace {

sockaddr_in everywhere(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  return out;
}

// A process whose calls are led, and its end as a number: 0 where all went as it should.
class Led {
 public:
  template <typename Body>
  explicit Led(Body body) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const Fd ours(ends[0]), theirs(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      const Fd calls = install_filter();
      const int given = calls.get();
      (void)send_descriptors(theirs.get(), "c", {&given, calls.valid() ? 1U : 0U});
      ::close(given);
      ::_exit(body());
    }
    char word = 0;
    std::vector<Fd> given;
    (void)receive_descriptors(ours.get(), {&word, 1}, given);
    if (!given.empty()) calls_ = std::move(given.front());
  }

  bool able() const { return calls_.valid(); }

  // False once it has ended.
  bool answer(const LedPod& pod) {
    pollfd wait{.fd = calls_.get(), .events = POLLIN, .revents = 0};
    EXPECT_GT(::poll(&wait, 1, 20'000), 0) << "it does nothing";
    return answer_call(calls_.get(), pod);
  }
  bool answer_at_once(const LedPod& pod) { return answer_call(calls_.get(), pod); }
  int end(const LedPod& pod) {
    while (answer(pod)) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  Fd calls_ = {};
};

int listen_everywhere(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in at = everywhere(port);
  const auto* address = reinterpret_cast<const sockaddr*>(&at);
  return ::bind(socket, address, sizeof at) == 0 && ::listen(socket, 1) == 0 ? socket : -1;
}

int port_of(int socket) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

TEST(Calls, TwoListenOnOnePortAndFindThemselves) {
  // A port that is free here and now.
  Fd probe(listen_everywhere(0));
  const auto port = static_cast<std::uint16_t>(port_of(probe.get()));
  probe.reset();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reading(ends[0]), writing(ends[1]);
  const auto body = [&] {
    writing.reset();
    const int server = listen_everywhere(port);
    if (server < 0) return errno;
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to = everywhere(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return errno;
    if (::accept(server, nullptr, nullptr) < 0) return errno;
    // Until both have come this far.
    char ignored = 0;
    return static_cast<int>(::read(reading.get(), &ignored, 1));
  };
  const auto pod = [](const char* ip) {
    return LedPod{.ip = *parse_ip(ip),
                  .listens = [](std::uint16_t) { return true; },
                  .table = [] { return LedTable(); }};
  };
  Led one(body), two(body);
  if (!one.able()) GTEST_SKIP() << "this machine leads no calls";
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(one.answer(pod("127.70.0.5")));
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(two.answer(pod("127.70.0.6")));
  writing.reset();
  EXPECT_EQ(one.end(pod("127.70.0.5")), 0);
  EXPECT_EQ(two.end(pod("127.70.0.6")), 0);
}

TEST(Calls, ThreadsAreLedByWhatTheirSocketsAre) {
  Led process([] {
    int end = 1;
    std::thread([&] {
      const int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
      const int yes = 1;
      ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
      sockaddr_in6 at{};
      at.sin6_family = AF_INET6;
      at.sin6_port = htons(2222);
      end = ::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
    }).join();
    return end;
  });
  if (!process.able()) GTEST_SKIP() << "this machine leads no calls";
  EXPECT_EQ(process.end({.ip = *parse_ip("127.70.0.5")}), 0);
}

TEST(Calls, NobodyWaitsWhereNobodyAsks) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reading(ends[0]), writing(ends[1]);
  Led process([&] {
    writing.reset();
    char ignored = 0;
    return static_cast<int>(::read(reading.get(), &ignored, 1));
  });
  if (!process.able()) GTEST_SKIP() << "this machine leads no calls";
  EXPECT_TRUE(process.answer_at_once({})) << "it lives";
  writing.reset();
  EXPECT_EQ(process.end({}), 0);
}

TEST(Calls, AnAddressThatIsNoneIsTheKernelsToRefuse) {
  Led process([] {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    return ::bind(socket, nullptr, 16) != 0 && errno == EFAULT ? 0 : 1;
  });
  if (!process.able()) GTEST_SKIP() << "this machine leads no calls";
  EXPECT_EQ(process.end({.ip = *parse_ip("127.70.0.5")}), 0);
}

TEST(Calls, ItIsKnownBeforehandWhetherCallsCanBeLed) {
  Led process([] { return 0; });
  EXPECT_EQ(can_lead().has_value(), process.able());
  if (process.able()) EXPECT_EQ(process.end({}), 0);
}

}  // namespace
}  // namespace skiff::node
