// IPv4 networks and the addresses handed to pods. Pure but for reading the machine's routes and
// addresses.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skiff::node {

// An IPv4 network; numbers in host byte order.
struct Subnet {
  std::uint32_t base = 0;
  int prefix = 0;

  std::uint32_t size() const { return prefix == 0 ? 0 : std::uint32_t{1} << (32 - prefix); }
  bool overlaps(const Subnet& other) const;
  bool operator==(const Subnet&) const = default;
};

std::optional<std::uint32_t> parse_ip(std::string_view text);
std::string format_ip(std::uint32_t ip);
// 127.64.0.0/10: pods that have no network of their own (node/loopback).
bool is_loopback_pod(std::uint32_t ip);
std::optional<Subnet> parse_subnet(std::string_view cidr);
std::string format_subnet(const Subnet& subnet);

// The networks that have routes, from the form of /proc/net/route; without the default route and
// without what goes through `own_link`.
std::vector<Subnet> parse_routes(std::string_view table, std::string_view own_link);
// The first of `preferred` (CIDRs) that no route of the machine touches, our own bridge's aside.
Result<std::string> pick_subnet(const std::vector<std::string>& preferred,
                                std::string_view own_bridge, std::string_view route_table);
Result<std::string> pick_subnet(const std::vector<std::string>& preferred,
                                std::string_view own_bridge);
std::vector<std::string> default_subnets();
// The first address of a network: the bridge's, where pods find Skiff.
Result<std::string> first_address(std::string_view cidr);

// Whether the machine has this address on one of its links.
bool is_own_address(std::string_view ip);

// Hands out the addresses of a network, in turn: one that was given back is not given out again
// until all others were, so that a peer's stale connection does not reach a stranger.
class AddressPool {
 public:
  // Neither the network's own address, nor the first (the gateway), nor the broadcast address.
  explicit AddressPool(const Subnet& subnet) : subnet_(subnet) {}

  Result<std::string> take();
  void hold(std::string_view ip);  // in use since before this process
  void release(std::string_view ip);

 private:
  const Subnet subnet_;
  std::mutex mutex_;
  std::set<std::uint32_t> used_ = {};
  std::uint32_t next_ = 2;
};

}  // namespace skiff::node
