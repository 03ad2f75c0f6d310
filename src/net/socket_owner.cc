#include "net/socket_owner.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/strings.h"
#include "net/socket_holders.h"

namespace skiff::net {
namespace {

struct DiagRequest {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

DiagRequest diag_request(const SocketPair& pair) {
  DiagRequest request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;  // no NLM_F_DUMP: one socket, by its exact addresses
  request.body.sdiag_family = pair.v6 ? AF_INET6 : AF_INET;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  // The peer's socket has our remote address as its source.
  request.body.id.idiag_sport = htons(pair.remote_port);
  request.body.id.idiag_dport = htons(pair.local_port);
  std::memcpy(request.body.id.idiag_src, pair.remote.data(), pair.remote.size());
  std::memcpy(request.body.id.idiag_dst, pair.local.data(), pair.local.size());
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

// Only an open socket has an owner: the kernel gives user 0 for one that is closed or orphaned.
bool owned(unsigned state, unsigned long inode) { return state == TCP_ESTABLISHED && inode != 0; }

// False: the kernel cannot be asked this way. True with an empty owner: it does not know.
bool ask_netlink(int fd, std::uint32_t sequence, const SocketPair& pair,
                 std::optional<SocketOwner>& owner) {
  if (fd < 0) return false;
  DiagRequest request = diag_request(pair);
  request.header.nlmsg_seq = sequence;
  alignas(nlmsghdr) char answer[8192];
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t size = ::sendto(fd, &request, sizeof request, 0, reinterpret_cast<sockaddr*>(&kernel),
                          sizeof kernel);
  // The kernel has put its answer into our queue before sendto returns, so this never waits.
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  do {  // what is left of a question that failed is nobody's answer
    if (size > 0) size = ::recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return false;
  } while (header->nlmsg_seq != sequence);
  if (header->nlmsg_type == NLMSG_ERROR) {
    const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
    return error->error == -ENOENT;
  }
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)) ||
      static_cast<std::size_t>(size) < NLMSG_LENGTH(sizeof(inet_diag_msg))) {
    return false;
  }
  const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  if (owned(found->idiag_state, found->idiag_inode)) {
    owner = {.user = found->idiag_uid, .inode = found->idiag_inode};
  }
  return true;
}

// The kernel prints addresses as 32-bit words in the machine's order.
std::string table_address(const SocketPair& pair, const std::array<std::uint8_t, 16>& address,
                          std::uint16_t port) {
  std::string out;
  for (std::size_t at = 0; at < (pair.v6 ? 16U : 4U); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, address.data() + at, sizeof word);
    out += fmt::format("{:08X}", word);
  }
  return out + fmt::format(":{:04X}", port);
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

template <class Number>
std::optional<Number> number(std::string_view text, int base) {
  Number out{};
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out, base);
  if (read.ec != std::errc{} || read.ptr != end) return {};
  return out;
}

// Of the namespace that the calling thread is in; 0 where the kernel does not tell.
std::uint64_t network_number() {
  struct stat found{};
  return ::stat("/proc/thread-self/ns/net", &found) == 0 ? found.st_ino : 0;
}

// The effective user of a process; nothing where it is gone.
std::optional<uid_t> user_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Uid:")) continue;
    const auto users = split(line, '\t');  // the word, real, effective, saved, of file systems
    return users.size() < 3 ? std::nullopt : number<uid_t>(users[2], 10);
  }
  return {};
}

}  // namespace

std::optional<SocketOwner> owner_in_table(std::string_view table, const SocketPair& pair) {
  const std::string peer = table_address(pair, pair.remote, pair.remote_port);
  const std::string us = table_address(pair, pair.local, pair.local_port);
  for (const std::string_view line : split(table, '\n')) {
    // sl local remote st tx:rx tr:when retransmits uid timeout inode
    const auto fields = words(line);
    if (fields.size() < 10 || fields[1] != peer || fields[2] != us) continue;
    const auto state = number<unsigned>(fields[3], 16);
    const auto inode = number<unsigned long>(fields[9], 10);
    const auto user = number<uid_t>(fields[7], 10);
    if (state && inode && user && owned(*state, *inode)) {
      return SocketOwner{.user = *user, .inode = *inode};
    }
    return {};
  }
  return {};
}

SocketOwners::SocketOwners(Distrust distrust)
    : user_(::geteuid()),
      distrust_(std::move(distrust)),
      network_(network_number()),
      fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {}

SocketOwners::~SocketOwners() {
  if (fd_ >= 0) ::close(fd_);
}

bool SocketOwners::moved() const {
  const std::uint64_t now = network_number();
  return network_ != 0 && now != 0 && now != network_;
}

bool SocketOwners::trusts(pid_t process) const {
  return process != ::getpid() && user_of(process) == user_ && !(distrust_ && distrust_(process));
}

bool SocketOwners::is_trusted(const SocketPair& pair) {
  const auto found = owner(pair);
  if (!found || found->user != user_) return false;
  // The kernel has found the socket in the network that we have left. Neither we nor our pods, who
  // are in the new one or below it, can make a socket there, and we may not look at processes of
  // the user namespace outside.
  if (moved()) return true;
  return only_held_by(found->inode, [this](pid_t process) { return trusts(process); });
}

std::optional<SocketOwner> SocketOwners::owner(const SocketPair& pair) {
  std::optional<SocketOwner> owner;
  {
    const std::lock_guard lock(mutex_);
    if (ask_netlink(fd_, ++asked_, pair, owner)) return owner;
  }
  // In another namespace this is another table, and nobody is found.
  std::ifstream file(pair.v6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  const std::string table((std::istreambuf_iterator<char>(file)), {});
  return owner_in_table(table, pair);
}

}  // namespace skiff::net
