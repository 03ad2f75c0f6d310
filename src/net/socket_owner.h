// Which user and which processes own the other end of a connection inside this machine, as the
// kernel says it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace skiff::net {

// A connection as our end sees it. Addresses in network order; IPv4 uses the first four bytes.
struct SocketPair {
  bool v6 = false;
  std::array<std::uint8_t, 16> remote = {};
  std::array<std::uint8_t, 16> local = {};
  std::uint16_t remote_port = 0;
  std::uint16_t local_port = 0;
};

// Of a socket that is open: a closed one reads as root's and must never be taken for it.
struct SocketOwner {
  uid_t user = 0;
  std::uint64_t inode = 0;

  bool operator==(const SocketOwner&) const = default;
};

// Looks at the network, and through the eyes of the user, that the process had when this was made:
// it may have entered namespaces since.
class SocketOwners {
 public:
  // Whether a process is one that must not be trusted although it is of our user: Skiff speaks for
  // others in what it connects to, and so do its pods. This process never is trusted itself.
  using Distrust = std::function<bool(pid_t)>;
  explicit SocketOwners(Distrust distrust = {});
  ~SocketOwners();
  SocketOwners(const SocketOwners&) = delete;
  SocketOwners& operator=(const SocketOwners&) = delete;

  // The owner of the peer's socket; nothing where the kernel does not know it, or where the socket
  // has no owner any more.
  std::optional<SocketOwner> owner(const SocketPair& pair);
  // True where the peer's socket is of our user, somebody holds it, and all who do are of our user,
  // too, and none of them is distrusted.
  bool is_trusted(const SocketPair& pair);

 private:
  bool trusts(pid_t process) const;
  bool moved() const;

  const uid_t user_;
  const Distrust distrust_;
  const std::uint64_t network_;  // that the process was in
  const int fd_;
  std::mutex mutex_;  // one question at a time
  std::uint32_t asked_ = 0;
};

// The same from the text of /proc/net/tcp or tcp6, for kernels without inet_diag.
std::optional<SocketOwner> owner_in_table(std::string_view table, const SocketPair& pair);

}  // namespace skiff::net
