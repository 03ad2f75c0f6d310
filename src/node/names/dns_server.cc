#include "node/names/dns_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <random>
#include <thread>

#include "base/strings.h"
#include "node/names/dns_packet.h"

namespace skiff::node {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t kConnectionsMax = 64;
constexpr std::size_t kForwardsMax = 256;
constexpr std::size_t kMessageBytes = 65'535;
constexpr std::chrono::seconds kConnectionIdle{10};

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

sockaddr_in socket_address(Ipv4 address, std::uint16_t port) {
  sockaddr_in out = {};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(address);
  out.sin_port = htons(port);
  return out;
}

Result<Socket> bound(int type, Ipv4 address, std::uint16_t port) {
  Socket socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return fail(Code::kInternal, std::strerror(errno));
  const int on = 1;
  if (type == SOCK_STREAM) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  const sockaddr_in to = socket_address(address, port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return fail(Code::kInternal, std::strerror(errno));
  }
  if (type == SOCK_STREAM && ::listen(socket.get(), 64) != 0) {
    return fail(Code::kInternal, std::strerror(errno));
  }
  return socket;
}

std::uint16_t bound_port(const Socket& socket) {
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

// A TCP client: messages with their length before them, in both directions.
struct Connection {
  std::uint64_t id = 0;
  Socket socket;
  std::string in = {};
  std::string out = {};
  SteadyTime last = {};
  bool dead = false;

  void send(std::string_view message) {
    out += static_cast<char>(message.size() >> 8);
    out += static_cast<char>(message.size() & 255);
    out += message;
  }
};

// A query that another server is asked.
struct Forward {
  Socket socket;
  std::uint16_t id = 0;     // ours, so that nobody can guess it from the client's
  std::string packet = {};  // as received
  DnsQuery query = {};
  std::size_t upstream = 0;
  SteadyTime deadline = {};
  sockaddr_in client = {};       // UDP
  std::uint64_t connection = 0;  // TCP, where not 0
  bool done = false;
};

}  // namespace

class DnsServer::Impl {
 public:
  Impl(DnsServerOptions options, Socket udp, Socket tcp)
      : options_(std::move(options)),
        udp_(std::move(udp)),
        tcp_(std::move(tcp)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        port_(bound_port(udp_)),
        thread_([this] { run(); }) {}

  ~Impl() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

 private:
  void run() {
    for (;;) {
      std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {udp_.get(), POLLIN, 0}};
      const bool room = connections_.size() < kConnectionsMax;
      fds.push_back({room ? tcp_.get() : -1, POLLIN, 0});
      for (const Connection& c : connections_) {
        const short events = c.out.empty() ? POLLIN : POLLIN | POLLOUT;
        fds.push_back({c.socket.get(), events, 0});
      }
      for (const Forward& f : forwards_) fds.push_back({f.socket.get(), POLLIN, 0});
      const bool busy = !connections_.empty() || !forwards_.empty();
      ::poll(fds.data(), fds.size(), busy ? 100 : -1);
      if (fds[0].revents != 0) return;
      // Forwards first: connections add to them, and what is new was not polled.
      std::size_t at = 3 + connections_.size();
      for (Forward& f : forwards_) serve_forward(f, fds[at++].revents);
      at = 3;
      for (Connection& c : connections_) serve_connection(c, fds[at++].revents);
      if (fds[1].revents != 0) serve_udp();
      if (room && fds[2].revents != 0) accept_one();
      const SteadyTime now = std::chrono::steady_clock::now();
      connections_.remove_if(
          [&](const Connection& c) { return c.dead || now - c.last > kConnectionIdle; });
      forwards_.remove_if([](const Forward& f) { return f.done; });
    }
  }

  void serve_udp() {
    // Not for ever: the other sockets wait too.
    for (int i = 0; i < 64; ++i) {
      sockaddr_in from = {};
      socklen_t size = sizeof from;
      const ssize_t n = ::recvfrom(udp_.get(), buffer_.data(), buffer_.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
      if (n < 0) return;
      const std::string_view packet(buffer_.data(), static_cast<std::size_t>(n));
      const auto query = parse_dns_query(packet);
      if (!query) continue;
      const auto answer = answer_dns(*query, *options_.records(), udp_room(*query));
      if (answer) {
        send_udp(*answer, from);
      } else {
        forward({.packet = std::string(packet), .query = *query, .client = from});
      }
    }
  }

  void send_udp(const std::string& packet, const sockaddr_in& to) {
    ::sendto(udp_.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof to);
  }

  void accept_one() {
    const int fd = ::accept4(tcp_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    connections_.push_back(
        {.id = ++last_connection_, .socket = Socket(fd), .last = std::chrono::steady_clock::now()});
  }

  void serve_connection(Connection& c, short events) {
    if (events & (POLLERR | POLLNVAL)) c.dead = true;
    if (c.dead || events == 0) return;
    c.last = std::chrono::steady_clock::now();
    if (events & (POLLIN | POLLHUP)) {
      const ssize_t n = ::recv(c.socket.get(), buffer_.data(), buffer_.size(), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c.dead = true;
      if (n > 0) c.in.append(buffer_.data(), static_cast<std::size_t>(n));
      read_messages(c);
    }
    flush(c);
  }

  void read_messages(Connection& c) {
    while (c.in.size() >= 2) {
      const auto length = static_cast<std::size_t>(static_cast<unsigned char>(c.in[0]) << 8 |
                                                   static_cast<unsigned char>(c.in[1]));
      if (c.in.size() < length + 2) return;
      const std::string packet = c.in.substr(2, length);
      c.in.erase(0, length + 2);
      const auto query = parse_dns_query(packet);
      // Somebody who sends no queries, or asks without reading, is not served.
      if (!query || c.out.size() > 4 * kMessageBytes) {
        c.dead = true;
        return;
      }
      const auto answer = answer_dns(*query, *options_.records(), kMessageBytes);
      if (answer) {
        c.send(*answer);
      } else {
        forward({.packet = packet, .query = *query, .connection = c.id});
      }
    }
  }

  void flush(Connection& c) {
    if (c.dead || c.out.empty()) return;
    const ssize_t n = ::send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n > 0) c.out.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) c.dead = true;
  }

  void forward(Forward f) {
    if (forwards_.size() >= kForwardsMax) return finish(f, refuse(f));
    forwards_.push_back(std::move(f));
    ask(forwards_.back());
  }

  static std::string refuse(const Forward& f) {
    return refuse_dns(f.query, DnsCode::kServerFailure);
  }

  // Asks the next server that can be reached; without one the client is told.
  void ask(Forward& f) {
    for (; f.upstream < options_.upstreams.size(); ++f.upstream) {
      const DnsUpstream& to = options_.upstreams[f.upstream];
      // A socket of its own has a port of its own: a forged answer has to guess it.
      f.socket = Socket(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const sockaddr_in address = socket_address(to.address, to.port);
      if (f.socket.get() < 0 ||
          ::connect(f.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
              0) {
        continue;
      }
      f.id = static_cast<std::uint16_t>(random_());
      std::string packet = f.packet;
      packet[0] = static_cast<char>(f.id >> 8);
      packet[1] = static_cast<char>(f.id & 255);
      if (::send(f.socket.get(), packet.data(), packet.size(), 0) < 0) continue;
      f.deadline = std::chrono::steady_clock::now() + options_.upstream_timeout;
      return;
    }
    finish(f, refuse(f));
  }

  void serve_forward(Forward& f, short events) {
    if (f.done) return;
    if (events & POLLIN) {
      const ssize_t n = ::recv(f.socket.get(), buffer_.data(), buffer_.size(), 0);
      std::string answer(buffer_.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
      const bool ours = answer.size() >= 12 && static_cast<unsigned char>(answer[0]) == f.id >> 8 &&
                        static_cast<unsigned char>(answer[1]) == (f.id & 255);
      if (ours) {
        answer[0] = static_cast<char>(f.query.id >> 8);
        answer[1] = static_cast<char>(f.query.id & 255);
        return finish(f, answer);
      }
    }
    const bool refused = (events & POLLERR) != 0;
    if (refused || std::chrono::steady_clock::now() >= f.deadline) {
      ++f.upstream;
      ask(f);
    }
  }

  void finish(Forward& f, const std::string& answer) {
    f.done = true;
    if (f.connection == 0) return send_udp(answer, f.client);
    for (Connection& c : connections_) {
      if (c.id != f.connection) continue;
      c.send(answer);
      c.last = std::chrono::steady_clock::now();
      flush(c);
    }
  }

  const DnsServerOptions options_;
  Socket udp_;
  Socket tcp_;
  Socket wake_;
  const std::uint16_t port_;
  std::vector<char> buffer_ = std::vector<char>(kMessageBytes);
  std::list<Connection> connections_ = {};
  std::list<Forward> forwards_ = {};
  std::uint64_t last_connection_ = 0;
  std::random_device random_ = {};
  std::thread thread_;  // last: it uses all of the above
};

DnsServer::DnsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DnsServer::~DnsServer() = default;

std::uint16_t DnsServer::port() const { return impl_->port(); }

Result<std::unique_ptr<DnsServer>> DnsServer::start(DnsServerOptions options) {
  const auto address = parse_ipv4(options.address);
  if (!address) return fail(Code::kInvalid, "not an IPv4 address: " + options.address);
  std::string why;
  // With port 0 the port that UDP got may be taken for TCP: then another one is tried.
  for (int tries = options.port == 0 ? 16 : 1; tries > 0; --tries) {
    auto udp = bound(SOCK_DGRAM, *address, options.port);
    if (!udp) {
      why = udp.error().message;
      continue;
    }
    auto tcp = bound(SOCK_STREAM, *address, bound_port(*udp));
    if (!tcp) {
      why = tcp.error().message;
      continue;
    }
    return std::unique_ptr<DnsServer>(new DnsServer(
        std::make_unique<Impl>(std::move(options), std::move(*udp), std::move(*tcp))));
  }
  return fail(Code::kInternal,
              fmt::format("cannot serve DNS on {}:{}: {}", options.address, options.port, why));
}

std::vector<DnsUpstream> parse_upstreams(std::string_view resolv_conf, std::string_view own) {
  std::vector<DnsUpstream> out;
  for (std::string_view line : split(resolv_conf, '\n')) {
    line = trim(line);
    constexpr std::string_view kKey = "nameserver";
    if (!line.starts_with(kKey)) continue;
    const std::string_view value = trim(line.substr(kKey.size()));
    const auto address = parse_ipv4(value);
    if (address && value != own && out.size() < 3) out.push_back({.address = *address});
  }
  return out;
}

}  // namespace skiff::node
