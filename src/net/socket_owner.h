// Which user owns the other end of a connection inside this machine, as the kernel says it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
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

// Looks at the network, and through the eyes of the user, that the process had when this was made:
// it may have entered namespaces since.
class SocketOwners {
 public:
  SocketOwners();
  ~SocketOwners();
  SocketOwners(const SocketOwners&) = delete;
  SocketOwners& operator=(const SocketOwners&) = delete;

  // The owner of the peer's socket; nothing where the kernel does not know it, or where the socket
  // has no owner any more (a closed socket reads as root's and must never be taken for it).
  std::optional<uid_t> owner(const SocketPair& pair);
  bool is_ours(const SocketPair& pair);

 private:
  const uid_t user_;
  const int fd_;
  std::mutex mutex_;  // one question at a time
  std::uint32_t asked_ = 0;
};

// The same from the text of /proc/net/tcp or tcp6, for kernels without inet_diag.
std::optional<uid_t> owner_in_table(std::string_view table, const SocketPair& pair);

}  // namespace skiff::net
