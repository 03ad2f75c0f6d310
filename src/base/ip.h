// IP addresses and blocks of them, as Kubernetes reads and writes them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skiff {

// IPv4 addresses are held as IPv4-mapped IPv6 ones, so that both compare.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes = {};

  bool v4() const;           // in the range of mapped addresses
  std::string text() const;  // 10.0.0.1; 2001:db8::1 as RFC 5952 wants it
  bool operator==(const IpAddress&) const = default;
};

// As Kubernetes always took them: leading zeros in an IPv4 part are allowed and decimal.
std::optional<IpAddress> parse_ip(std::string_view text);
// Without leading zeros.
bool is_strict_ip(std::string_view text);

// Loopback, link-local and unspecified addresses, in whichever form: what only this machine or its
// own wire answers. No stranger may choose such a destination for a connection of ours.
bool is_local_only(const IpAddress& ip);

struct IpBlock {
  IpAddress address = {};  // as given, also beyond the prefix
  int prefix = 0;          // of 32 bits for IPv4, of 128 for IPv6
  bool v4 = false;

  IpAddress network() const;  // the address without what is beyond the prefix
  bool contains(const IpAddress& ip) const;
  std::string text() const;  // of the network: 10.0.0.0/8
};

std::optional<IpBlock> parse_cidr(std::string_view text);

}  // namespace skiff
