#include "node/loopback/lead.h"

#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr std::uint32_t kAny = INADDR_ANY;
constexpr std::uint16_t kNames = 53;
constexpr std::uint16_t kRootsPorts = 1024;
constexpr std::uint16_t kInstead = 65536 - kRootsPorts;

// An IPv4 address and port in a sockaddr of either family.
struct LeadPlace {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;
  bool v6 = false;      // written as an IPv6 address
  bool native = false;  // :: or ::1, which an IPv6 socket means where it says "any" or "here"
};

template <typename Sockaddr>
std::optional<Sockaddr> read_as(std::span<const std::byte> address, std::size_t least) {
  if (address.size() < least) return {};
  Sockaddr out{};
  std::memcpy(&out, address.data(), std::min(address.size(), sizeof out));
  return out;
}

std::optional<LeadPlace> read_place(std::span<const std::byte> address) {
  const auto head = read_as<sockaddr>(address, sizeof(sa_family_t));
  if (!head) return {};
  if (head->sa_family == AF_INET) {
    const auto v4 = read_as<sockaddr_in>(address, sizeof(sockaddr_in));
    if (!v4) return {};
    return LeadPlace{.ip = ntohl(v4->sin_addr.s_addr), .port = ntohs(v4->sin_port)};
  }
  if (head->sa_family != AF_INET6) return {};
  const auto v6 = read_as<sockaddr_in6>(address, offsetof(sockaddr_in6, sin6_scope_id));
  if (!v6) return {};
  LeadPlace out{.port = ntohs(v6->sin6_port), .v6 = true};
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    std::uint32_t ip = 0;
    std::memcpy(&ip, &v6->sin6_addr.s6_addr[12], sizeof ip);
    out.ip = ntohl(ip);
    return out;
  }
  out.native = true;
  if (IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) return out;
  if (!IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return {};
  out.ip = INADDR_LOOPBACK;
  return out;
}

void write_place(std::span<std::byte> address, const LeadPlace& place) {
  const std::uint16_t port = htons(place.port);
  const std::uint32_t ip = htonl(place.ip);
  if (!place.v6) {
    std::memcpy(address.data() + offsetof(sockaddr_in, sin_port), &port, sizeof port);
    std::memcpy(address.data() + offsetof(sockaddr_in, sin_addr), &ip, sizeof ip);
    return;
  }
  std::array<std::uint8_t, 16> mapped{};
  if (place.native) {
    mapped[15] = 1;  // ::1
  } else {
    mapped[10] = mapped[11] = 0xff;
    std::memcpy(&mapped[12], &ip, sizeof ip);
  }
  std::memcpy(address.data() + offsetof(sockaddr_in6, sin6_port), &port, sizeof port);
  std::memcpy(address.data() + offsetof(sockaddr_in6, sin6_addr), mapped.data(), mapped.size());
}

bool is_here(std::uint32_t ip) { return ip == kAny || ip == INADDR_LOOPBACK; }

std::optional<LeadPlace> lead_bind(LeadPlace place, const SocketFacts& facts, const LedPod& pod) {
  // A port of the kernel's choice is in nobody's way, and its socket may want to reach the outside.
  if ((!is_here(place.ip) && place.ip != pod.ip) || place.port == 0) return {};
  if (place.native && facts.only_v6) {
    // There is no IPv6 address for each pod, and nobody is told of one: it listens where it is in
    // nobody's way.
    place.port = 0;
    return place;
  }
  place.native = false;
  place.ip = pod.ip;
  place.port = led_port(pod.ip, place.port);
  return place;
}

std::optional<LeadPlace> lead_to_service(LeadPlace place, bool udp, const LedPod& pod) {
  for (const ServicePort& service : pod.table().services) {
    if (service.udp != udp || service.port != place.port || service.ips.front() != place.ip) {
      continue;
    }
    // With nobody behind it: refused at once, as nobody takes this port.
    if (service.targets.empty()) return LeadPlace{.ip = pod.ip, .port = 1, .v6 = place.v6};
    const ServiceTarget& to = service.targets[pod.choice % service.targets.size()];
    place.ip = to.ip;
    place.port = led_port(to.ip, to.port);
    return place;
  }
  return {};
}

std::optional<LeadPlace> lead_connect(LeadPlace place, const SocketFacts& facts,
                                      const LedPod& pod) {
  if (place.port == kNames && !is_loopback_pod(place.ip)) {
    const std::uint16_t names = pod.table().names_port;
    if (names == 0) return {};
    place.native = false;
    place.ip = INADDR_LOOPBACK;
    place.port = names;
    return place;
  }
  if (is_loopback_pod(place.ip)) {
    const std::uint16_t port = led_port(place.ip, place.port);
    if (port == place.port) return {};
    place.port = port;
    return place;
  }
  if (is_here(place.ip)) {
    const std::uint16_t port = led_port(pod.ip, place.port);
    if (!pod.listens(port)) return {};
    place.native = false;
    place.ip = pod.ip;
    place.port = port;
    return place;
  }
  return lead_to_service(place, facts.udp, pod);
}

// Programs that answer for names of the machine know none of the cluster; where they are not found,
// the C library asks by DNS.
bool hide_resolver(std::span<std::byte> address) {
  const auto un = read_as<sockaddr_un>(address, sizeof(sa_family_t) + 1);
  if (!un || un->sun_family != AF_UNIX) return false;
  const std::string_view path(un->sun_path, strnlen(un->sun_path, sizeof un->sun_path));
  for (const std::string_view hidden :
       {"/run/systemd/resolve/io.systemd.Resolve", "/var/run/nscd/socket", "/run/nscd/socket"}) {
    if (path != hidden) continue;
    address[offsetof(sockaddr_un, sun_path) + 1] = std::byte{'-'};
    return true;
  }
  return false;
}

}  // namespace

std::uint16_t led_port(std::uint32_t ip, std::uint16_t port) {
  if (!is_loopback_pod(ip) || port == 0 || port >= kRootsPorts) return port;
  return static_cast<std::uint16_t>(port + kInstead);
}

bool lead(LedCall call, std::span<std::byte> address, const SocketFacts& facts, const LedPod& pod) {
  if (call == LedCall::kConnect && hide_resolver(address)) return true;
  const auto place = read_place(address);
  if (!place) return false;
  const auto led =
      call == LedCall::kBind ? lead_bind(*place, facts, pod) : lead_connect(*place, facts, pod);
  if (!led) return false;
  write_place(address, *led);
  return true;
}

bool is_taken(std::string_view sockets, std::uint32_t ip, std::uint16_t port) {
  constexpr std::string_view kListens = "0A", kUnconnected = "07";
  for (const std::string_view line : split(sockets, '\n')) {
    std::vector<std::string_view> words;
    for (const std::string_view word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.size() < 4 || (words[3] != kListens && words[3] != kUnconnected)) continue;
    const std::string_view local = words[1];
    const std::size_t colon = local.find(':');
    if (colon != 8 && colon != 32) continue;
    // An IPv4 address stands at the end of the IPv6 one that means it; its bytes as this machine
    // keeps numbers.
    std::uint32_t at = 0, number = 0;
    const std::string_view last = local.substr(colon - 8, 8);
    const std::string_view tail = local.substr(colon + 1);
    if (std::from_chars(last.data(), last.data() + 8, at, 16).ec != std::errc()) continue;
    if (std::from_chars(tail.data(), tail.data() + tail.size(), number, 16).ec != std::errc()) {
      continue;
    }
    if (at == htonl(ip) && number == port) return true;
  }
  return false;
}

}  // namespace skiff::node
