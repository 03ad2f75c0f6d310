// Links, addresses and routes by rtnetlink: microseconds where the `ip` command takes milliseconds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/net/addresses.h"

namespace skiff::node {

// A conversation with one network namespace. Not for use by several threads at once.
class Netlink {
 public:
  static Result<Netlink> open();
  // With the namespace of another process. The calling thread is in it only while the socket is
  // made.
  static Result<Netlink> open_in(pid_t pid);

  Netlink(Netlink&& other) noexcept;
  Netlink& operator=(Netlink&&) = delete;
  ~Netlink();

  // Index of a link; 0 where there is none.
  Result<int> find_link(std::string_view name);
  // Index of some link of a bridge; 0 where it has none.
  Result<int> find_port(int bridge);
  Result<void> make_bridge(std::string_view name);
  // A pair whose other end, named eth0, appears in the namespace of `peer` already.
  Result<void> make_veth(std::string_view name, pid_t peer, int bridge);
  Result<void> remove_link(int link);
  Result<void> set_up(int link);
  Result<void> add_address(int link, std::uint32_t ip, int prefix);
  // Lets a link of a bridge have back what came in by it.
  Result<void> reflect(int link);
  Result<void> add_route(const Subnet& to, int link);
  Result<void> add_default_route(std::uint32_t gateway);

 private:
  explicit Netlink(int fd) : fd_(fd) {}
  class Message;
  // Sends the message and waits for the kernel's verdict.
  Result<int> ask(Message& message, std::string_view what);

  int fd_ = -1;
  std::uint32_t sequence_ = 0;
};

}  // namespace skiff::node
