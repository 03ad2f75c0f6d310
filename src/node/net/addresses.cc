#include "node/net/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace skiff::node {
namespace {

std::uint32_t mask(int prefix) { return prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix); }

// /proc/net/route has numbers in hexadecimal, in the byte order of the machine's network.
std::optional<std::uint32_t> parse_hex(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return ntohl(number);
}

}  // namespace

bool Subnet::overlaps(const Subnet& other) const {
  const std::uint32_t common = mask(std::min(prefix, other.prefix));
  return (base & common) == (other.base & common);
}

std::optional<std::uint32_t> parse_ip(std::string_view text) {
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

bool is_loopback_pod(std::uint32_t ip) { return ip >> 22 == (127U << 24 | 64U << 16) >> 22; }

std::string format_ip(std::uint32_t ip) {
  return fmt::format("{}.{}.{}.{}", ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255);
}

std::optional<Subnet> parse_subnet(std::string_view cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == cidr.npos) return std::nullopt;
  const auto ip = parse_ip(cidr.substr(0, slash));
  const std::string_view digits = cidr.substr(slash + 1);
  int prefix = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!ip || !whole || prefix < 8 || prefix > 30) return std::nullopt;
  return Subnet{.base = *ip & mask(prefix), .prefix = prefix};
}

std::string format_subnet(const Subnet& subnet) {
  return fmt::format("{}/{}", format_ip(subnet.base), subnet.prefix);
}

std::vector<Subnet> parse_routes(std::string_view table, std::string_view own_link) {
  std::vector<Subnet> out;
  for (const std::string_view line : split(table, '\n')) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (words.size() < 8 || trim(words[0]) == own_link) continue;
    const auto base = parse_hex(trim(words[1]));
    const auto netmask = parse_hex(trim(words[7]));
    if (!base || !netmask || *netmask == 0) continue;
    out.push_back({.base = *base, .prefix = __builtin_popcount(*netmask)});
  }
  return out;
}

Result<std::string> pick_subnet(const std::vector<std::string>& preferred,
                                std::string_view own_bridge, std::string_view route_table) {
  const std::vector<Subnet> taken = parse_routes(route_table, own_bridge);
  for (const std::string& cidr : preferred) {
    const auto subnet = parse_subnet(cidr);
    if (!subnet) return fail(Code::kInvalid, fmt::format("{} is not an IPv4 network", cidr));
    bool clear = true;
    for (const Subnet& other : taken) clear = clear && !subnet->overlaps(other);
    if (clear) return cidr;
  }
  return fail(Code::kConflict,
              fmt::format("every network for pods ({}) is already routed on this machine",
                          join(preferred, ", ")));
}

Result<std::string> pick_subnet(const std::vector<std::string>& preferred,
                                std::string_view own_bridge) {
  // Of this thread: its network may be another than that of its process.
  std::ifstream file("/proc/thread-self/net/route");
  std::ostringstream text;
  text << file.rdbuf();
  return pick_subnet(preferred, own_bridge, text.str());
}

std::vector<std::string> default_subnets() {
  // Large enough for 4,000 pods, and enough of them for many Skiffs on one machine; chosen beside
  // what clusters and engines take by default.
  std::vector<std::string> out;
  for (const std::string_view start : {"10.87", "10.187", "172.29"}) {
    for (int third = 0; third < 256; third += 16)
      out.push_back(fmt::format("{}.{}.0/20", start, third));
  }
  return out;
}

Result<std::string> first_address(std::string_view cidr) {
  const auto subnet = parse_subnet(cidr);
  if (!subnet) return fail(Code::kInvalid, fmt::format("{} is not an IPv4 network", cidr));
  return format_ip(subnet->base + 1);
}

bool is_own_address(std::string_view ip) {
  const auto wanted = parse_ip(ip);
  ifaddrs* all = nullptr;
  if (!wanted || ::getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    found = ntohl(address->sin_addr.s_addr) == *wanted;
  }
  ::freeifaddrs(all);
  return found;
}

Result<std::string> AddressPool::take() {
  const std::lock_guard lock(mutex_);
  const std::uint32_t end = subnet_.size() - 1;
  for (std::uint32_t tried = 2; tried < end; ++tried) {
    const std::uint32_t offset = next_;
    next_ = next_ + 1 < end ? next_ + 1 : 2;
    if (used_.insert(subnet_.base + offset).second) return format_ip(subnet_.base + offset);
  }
  return fail(Code::kTooManyRequests,
              fmt::format("all addresses of {} are in use", format_subnet(subnet_)));
}

void AddressPool::hold(std::string_view ip) {
  const std::lock_guard lock(mutex_);
  if (const auto number = parse_ip(ip)) used_.insert(*number);
}

void AddressPool::release(std::string_view ip) {
  const std::lock_guard lock(mutex_);
  if (const auto number = parse_ip(ip)) used_.erase(*number);
}

}  // namespace skiff::node
