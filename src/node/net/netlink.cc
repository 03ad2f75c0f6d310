#include "node/net/netlink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace skiff::node {
namespace {

std::unexpected<Error> failure(std::string_view what, int number) {
  return fail(Code::kInternal, fmt::format("{}: {}", what, std::strerror(number)));
}

}  // namespace

// A request under construction: header, fixed part, attributes.
class Netlink::Message {
 public:
  template <class Fixed>
  Message(std::uint16_t type, std::uint16_t flags, const Fixed& fixed) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&header, sizeof header);
    append(&fixed, sizeof fixed);
  }

  template <class Fixed>
  void fixed(const Fixed& part) {
    append(&part, sizeof part);
  }

  void attribute(std::uint16_t type, const void* data, std::size_t bytes) {
    const rtattr header{.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(bytes)), .rta_type = type};
    append(&header, sizeof header);
    append(data, bytes);
  }
  void text(std::uint16_t type, std::string_view value) {
    const std::string terminated(value);
    attribute(type, terminated.c_str(), terminated.size() + 1);
  }
  void number(std::uint16_t type, std::uint32_t value) { attribute(type, &value, sizeof value); }

  // Attributes between begin and end are inside this one.
  std::size_t begin(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    const rtattr header{.rta_len = 0, .rta_type = type};
    append(&header, sizeof header);
    return at;
  }
  void end(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &length, sizeof length);
  }

  const std::string& finish(std::uint32_t sequence) {
    nlmsghdr header{};
    std::memcpy(&header, bytes_.data(), sizeof header);
    header.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
    header.nlmsg_seq = sequence;
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
  }

 private:
  void append(const void* data, std::size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()), '\0');
  }

  std::string bytes_ = {};
};

Result<Netlink> Netlink::open() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return failure("netlink", errno);
  return Netlink(fd);
}

Result<Netlink> Netlink::open_in(pid_t pid) {
  const int own = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  const int other = ::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC);
  int fd = -1;
  int number = errno;
  if (own >= 0 && other >= 0) {
    const bool entered = ::setns(other, CLONE_NEWNET) == 0;
    if (entered) fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    number = errno;
    // A thread left in a pod's network would do who knows what there.
    SKIFF_CHECK(!entered || ::setns(own, CLONE_NEWNET) == 0,
                "cannot leave a pod's network namespace");
  }
  if (own >= 0) ::close(own);
  if (other >= 0) ::close(other);
  if (fd < 0) return failure("cannot enter the pod's network namespace", number);
  return Netlink(fd);
}

Netlink::Netlink(Netlink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), sequence_(other.sequence_) {}

Netlink::~Netlink() {
  if (fd_ >= 0) ::close(fd_);
}

Result<int> Netlink::ask(Message& message, std::string_view what) {
  const std::string& bytes = message.finish(++sequence_);
  if (::send(fd_, bytes.data(), bytes.size(), 0) < 0) return failure(what, errno);
  int link = 0;
  while (true) {
    alignas(nlmsghdr) char reply[16 * 1024];
    const ssize_t got = ::recv(fd_, reply, sizeof reply, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(what, errno);
    auto left = static_cast<unsigned>(got);
    for (auto* header = reinterpret_cast<nlmsghdr*>(reply); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_seq != sequence_) continue;
      if (header->nlmsg_type == RTM_NEWLINK) {
        link = static_cast<ifinfomsg*>(NLMSG_DATA(header))->ifi_index;
      }
      if (header->nlmsg_type == NLMSG_DONE) return link;  // the end of a list
      if (header->nlmsg_type != NLMSG_ERROR) continue;
      const int number = -static_cast<nlmsgerr*>(NLMSG_DATA(header))->error;
      if (number != 0) {
        errno = number;
        return failure(what, number);
      }
      return link;
    }
  }
}

Result<int> Netlink::find_link(std::string_view name) {
  Message message(RTM_GETLINK, 0, ifinfomsg{});
  message.text(IFLA_IFNAME, name);
  auto found = ask(message, name);
  if (!found && errno == ENODEV) return 0;
  return found;
}

Result<int> Netlink::find_port(int bridge) {
  Message message(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{});
  message.number(IFLA_MASTER, static_cast<std::uint32_t>(bridge));
  return ask(message, fmt::format("cannot list the links of bridge {}", bridge));
}

Result<void> Netlink::make_bridge(std::string_view name) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{});
  message.text(IFLA_IFNAME, name);
  // Fixed, from the name: a bridge without its own takes that of a port, and pods would lose their
  // gateway from their caches whenever a port comes or goes.
  std::uint32_t hash = 2'166'136'261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
  unsigned char hardware[6] = {0x02, 0x5c};
  std::memcpy(hardware + 2, &hash, sizeof hash);
  message.attribute(IFLA_ADDRESS, hardware, sizeof hardware);
  const std::size_t info = message.begin(IFLA_LINKINFO);
  message.text(IFLA_INFO_KIND, "bridge");
  message.end(info);
  SKIFF_TRY(ask(message, fmt::format("cannot make the bridge {}", name)));
  return {};
}

Result<void> Netlink::make_veth(std::string_view name, pid_t peer, int bridge) {
  ifinfomsg up{};
  up.ifi_flags = IFF_UP;
  up.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, up);
  message.text(IFLA_IFNAME, name);
  message.number(IFLA_MASTER, static_cast<std::uint32_t>(bridge));
  const std::size_t info = message.begin(IFLA_LINKINFO);
  message.text(IFLA_INFO_KIND, "veth");
  const std::size_t data = message.begin(IFLA_INFO_DATA);
  const std::size_t other = message.begin(VETH_INFO_PEER);
  message.fixed(ifinfomsg{});
  message.text(IFLA_IFNAME, "eth0");
  message.number(IFLA_NET_NS_PID, static_cast<std::uint32_t>(peer));
  message.end(other);
  message.end(data);
  message.end(info);
  SKIFF_TRY(ask(message, fmt::format("cannot make the link {}", name)));
  return {};
}

Result<void> Netlink::remove_link(int link) {
  ifinfomsg which{};
  which.ifi_index = link;
  Message message(RTM_DELLINK, 0, which);
  SKIFF_TRY(ask(message, "cannot remove a link"));
  return {};
}

Result<void> Netlink::set_up(int link) {
  ifinfomsg which{};
  which.ifi_index = link;
  which.ifi_flags = IFF_UP;
  which.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, 0, which);
  SKIFF_TRY(ask(message, "cannot bring a link up"));
  return {};
}

Result<void> Netlink::add_address(int link, std::uint32_t ip, int prefix) {
  ifaddrmsg which{};
  which.ifa_family = AF_INET;
  which.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  which.ifa_index = static_cast<std::uint32_t>(link);
  Message message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, which);
  message.number(IFA_LOCAL, htonl(ip));
  message.number(IFA_ADDRESS, htonl(ip));
  message.number(IFA_BROADCAST, htonl(ip | (~std::uint32_t{0} >> prefix)));
  SKIFF_TRY(ask(message, fmt::format("cannot set the address {}", format_ip(ip))));
  return {};
}

Result<void> Netlink::reflect(int link) {
  ifinfomsg which{};
  which.ifi_family = AF_BRIDGE;
  which.ifi_index = link;
  Message message(RTM_SETLINK, 0, which);
  const std::size_t port = message.begin(IFLA_PROTINFO | NLA_F_NESTED);
  const std::uint8_t on = 1;
  message.attribute(IFLA_BRPORT_MODE, &on, sizeof on);
  message.end(port);
  SKIFF_TRY(ask(message, "cannot let a pod reach itself by its services"));
  return {};
}

Result<void> Netlink::add_route(const Subnet& to, int link) {
  rtmsg route{};
  route.rtm_family = AF_INET;
  route.rtm_dst_len = static_cast<unsigned char>(to.prefix);
  route.rtm_table = RT_TABLE_MAIN;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_LINK;
  route.rtm_type = RTN_UNICAST;
  Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
  message.number(RTA_DST, htonl(to.base));
  message.number(RTA_OIF, static_cast<std::uint32_t>(link));
  SKIFF_TRY(ask(message, "cannot set the route to services"));
  return {};
}

Result<void> Netlink::add_default_route(std::uint32_t gateway) {
  rtmsg route{};
  route.rtm_family = AF_INET;
  route.rtm_table = RT_TABLE_MAIN;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_UNICAST;
  Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
  message.number(RTA_GATEWAY, htonl(gateway));
  SKIFF_TRY(ask(message, "cannot set the default route"));
  return {};
}

}  // namespace skiff::node
