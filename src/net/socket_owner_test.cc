#include "net/socket_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

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
    std::optional<uid_t> owner;
  };
  const Case cases[] = {
      {"an open socket has its user", 0xC001, 1001},
      {"root's open socket is root's", 0xC004, 0},
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
  EXPECT_EQ(SocketOwners().owner(pair), user);
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

}  // namespace
}  // namespace skiff::net
