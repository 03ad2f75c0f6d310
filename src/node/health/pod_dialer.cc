#include "node/health/pod_dialer.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

#include "node/loopback/lead.h"
#include "node/net/addresses.h"

namespace skiff::node {
namespace {

// Every form of the IPv4 address, of "any" and of "here" included; nothing for others.
std::optional<std::uint32_t> ipv4_in(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
  }
  if (address.ss_family != AF_INET6) return {};
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return INADDR_ANY;
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return INADDR_LOOPBACK;
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return {};
  std::uint32_t ip = 0;
  std::memcpy(&ip, &v6.s6_addr[12], sizeof ip);
  return ntohl(ip);
}

bool means_here(std::uint32_t ip) {
  return ip == INADDR_ANY || (ip >> 24 == 127 && !is_loopback_pod(ip));
}

}  // namespace

PodDialer::PodDialer(Runtime& runtime, std::string pod_uid, std::string_view pod_ip)
    : runtime_(runtime), pod_uid_(std::move(pod_uid)), pod_ip_(parse_ip(pod_ip).value_or(0)) {}

Result<sockaddr_storage> PodDialer::resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(Code::kNotFound, fmt::format("lookup {}: no such host", host));
  }
  sockaddr_storage out{};
  std::memcpy(&out, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return out;
}

Result<int> PodDialer::socket_for(sockaddr_storage& to) const {
  auto ip = ipv4_in(to);
  if (ip && is_loopback_pod(pod_ip_)) {
    if (means_here(*ip)) ip = pod_ip_;
    sockaddr_in led{};
    led.sin_family = AF_INET;
    // The port is at the same place in both families.
    led.sin_port = reinterpret_cast<const sockaddr_in&>(to).sin_port;
    led.sin_port = htons(led_port(*ip, ntohs(led.sin_port)));
    led.sin_addr.s_addr = htonl(*ip);
    to = {};
    std::memcpy(&to, &led, sizeof led);
  }
  return runtime_.open_socket(pod_uid_, to.ss_family == AF_INET6);
}

}  // namespace skiff::node
