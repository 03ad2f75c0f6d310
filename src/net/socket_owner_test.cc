#include "net/socket_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "net/socket_holders.h"

namespace skiff::net {
namespace {

// Lines as /proc/net/tcp prints them on a little-endian machine.
constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1CFC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 "
    "1\n"
    "   1: 0100007F:C001 0100007F:1CFC 01 00000000:00000000 00:00000000 00000000  1001        0 22 "
    "1\n"
    "   2: 0100007F:C002 0100007F:1CFC 06 00000000:00000000 03:00001770 00000000     0        0 0 "
    "3\n"
    "   3: 0100007F:C003 0100007F:1CFC 01 00000000:00000000 00:00000000 00000000     0        0 0 "
    "1\n"
    "   4: 0100007F:C004 0100007F:1CFC 01 00000000:00000000 00:00000000 00000000     0        0 33 "
    "1\n"
    "   5: 0100007F:C005 0100007F:1CFD 01 00000000:00000000 00:00000000 00000000  1005        0 44 "
    "1\n"
    "   6: 0100007F:C006 broken\n";

TEST(SocketOwner, IsReadFromTheKernelsTable) {
  struct Case {
    std::string_view name;
    std::uint16_t port;
    std::optional<SocketOwner> owner;
  };
  const Case cases[] = {
      {"an open socket has its user", 0xC001, SocketOwner{1001, 22}},
      {"root's open socket is root's", 0xC004, SocketOwner{0, 33}},
      {"a closed socket is nobody's, although it reads as root's", 0xC002, {}},
      {"an orphaned socket is nobody's", 0xC003, {}},
      {"a connection to another port is another connection", 0xC005, {}},
      {"a line that cannot be read is nobody's", 0xC006, {}},
      {"an unknown socket is nobody's", 0xC009, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const SocketPair pair{.remote = {127, 0, 0, 1},
                          .local = {127, 0, 0, 1},
                          .remote_port = c.port,
                          .local_port = 7420};
    EXPECT_EQ(owner_in_table(kTable, pair), c.owner);
  }
}

// A process of the given user that connects and stays until the pipe is closed.
pid_t connect_as(uid_t user, const sockaddr_in& to, const int (&pipe)[2]) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(pipe[1]);
  char byte = 0;
  const int fd = ::setuid(user) == 0 ? ::socket(AF_INET, SOCK_STREAM, 0) : -1;
  const bool ok = fd >= 0 &&
                  ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                  ::read(pipe[0], &byte, 1) == 0;
  ::_exit(ok ? 0 : 1);
}

TEST(SocketOwner, OfALiveConnectionIsItsUserAndOfAClosedOneNobody) {
  const uid_t user = ::geteuid() == 0 ? 65534 : ::geteuid();
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof local;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&local), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&local), &size);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = connect_as(user, local, pipe);
  ASSERT_GT(child, 0);
  ::close(pipe[0]);
  sockaddr_in remote{};
  const int accepted = ::accept(listener, reinterpret_cast<sockaddr*>(&remote), &size);
  SocketPair pair{.remote_port = ntohs(remote.sin_port), .local_port = ntohs(local.sin_port)};
  std::memcpy(pair.remote.data(), &remote.sin_addr, 4);
  std::memcpy(pair.local.data(), &local.sin_addr, 4);
  const auto owner = SocketOwners().owner(pair);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->user, user);
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // Our end is still open, and the kernel still lists the other, now as root's.
  EXPECT_EQ(SocketOwners().owner(pair), std::nullopt);
  ::close(accepted);
  ::close(listener);
}

TEST(SocketOwner, OfAConnectionThatDoesNotExistIsNobody) {
  EXPECT_FALSE(SocketOwners().owner(
      {.remote = {127, 0, 0, 1}, .local = {127, 0, 0, 1}, .remote_port = 1, .local_port = 2}));
}

// A connection to this process; `client` is our end where this process made it.
struct Loop {
  int listener = -1, accepted = -1, client = -1;
  sockaddr_in at{};

  Loop() : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  }
  ~Loop() {
    for (const int fd : {listener, accepted, client}) ::close(fd);
  }
  int connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 ? fd : -1;
  }
  SocketPair accept() {
    sockaddr_in remote{};
    socklen_t size = sizeof remote;
    accepted = ::accept(listener, reinterpret_cast<sockaddr*>(&remote), &size);
    SocketPair pair{.remote_port = ntohs(remote.sin_port), .local_port = ntohs(at.sin_port)};
    std::memcpy(pair.remote.data(), &remote.sin_addr, 4);
    std::memcpy(pair.local.data(), &at.sin_addr, 4);
    return pair;
  }
};

// A process that does something and then stays until it is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ != 0) return;
    act();
    while (true) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

TEST(SocketOwner, IsTrustedAsAProcessOfOurUserThatIsNotThisOne) {
  Loop loop;
  const Child other([&] { (void)loop.connect(); });
  const SocketPair pair = loop.accept();
  EXPECT_TRUE(SocketOwners().is_trusted(pair));
  pid_t asked = 0;
  SocketOwners wary([&](pid_t process) {
    asked = process;
    return true;
  });
  EXPECT_FALSE(wary.is_trusted(pair)) << "somebody knows better";
  EXPECT_EQ(asked, other.pid());
}

TEST(SocketOwner, IsNotTrustedWhereItIsThisProcess) {
  Loop loop;
  loop.client = loop.connect();
  const SocketPair pair = loop.accept();
  ASSERT_TRUE(SocketOwners().owner(pair));
  EXPECT_FALSE(SocketOwners().is_trusted(pair));
}

TEST(SocketOwner, IsNotTrustedWhereASharedSocketHasAnyBadHolder) {
  Loop loop;
  loop.client = loop.connect();
  const SocketPair pair = loop.accept();
  const Child first([] {}), second([] {});  // both have it, and so have we
  EXPECT_FALSE(SocketOwners().is_trusted(pair));
  ::close(std::exchange(loop.client, -1));
  EXPECT_TRUE(SocketOwners().is_trusted(pair));
  for (const pid_t bad : {first.pid(), second.pid()}) {
    EXPECT_FALSE(SocketOwners([&](pid_t process) { return process == bad; }).is_trusted(pair));
  }
}

TEST(SocketOwner, IsNotTrustedAfterItBecameAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  Loop loop;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const Child other([&] {
    (void)loop.connect();
    (void)!::setuid(65534);
    (void)!::write(pipe[1], "x", 1);
  });
  const SocketPair pair = loop.accept();
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(SocketOwners().owner(pair).value_or(SocketOwner{1, 0}).user, 0U);
  EXPECT_FALSE(SocketOwners().is_trusted(pair));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(SocketOwner, IsNotTrustedWhereTheSearchIsTooLong) {
  Loop loop;
  const Child other([&] { (void)loop.connect(); });
  const SocketPair pair = loop.accept();
  const std::uint64_t inode = SocketOwners().owner(pair).value_or(SocketOwner{}).inode;
  const auto anybody = [](pid_t) { return true; };
  EXPECT_TRUE(only_held_by(inode, anybody));
  EXPECT_FALSE(only_held_by(inode, anybody, 1));
  EXPECT_FALSE(only_held_by(1, anybody)) << "nobody holds it";
}

}  // namespace
}  // namespace skiff::net
