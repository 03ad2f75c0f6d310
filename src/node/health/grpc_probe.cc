#include "node/health/grpc_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "node/health/health_call.h"
#include "node/health/pod_dialer.h"

namespace skiff::node {
namespace {

using std::chrono::milliseconds;
using Deadline = std::chrono::steady_clock::time_point;

constexpr std::string_view kUserAgent = "kube-probe/1.34";
constexpr int kUnimplemented = 12;

ProbeAnswer grpc_failure(std::string text) {
  return {ProbeOutcome::kFailure, false, std::move(text)};
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// True where the socket is ready for `events` in time.
bool ready(int fd, short events, Deadline deadline) {
  const auto left =
      std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  return left.count() > 0 && ::poll(&wait, 1, static_cast<int>(left.count())) == 1;
}

bool connected(int fd, const sockaddr_storage& to, Deadline deadline) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
  if (errno != EINPROGRESS || !ready(fd, POLLOUT, deadline)) return false;
  int number = 0;
  socklen_t size = sizeof number;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size) == 0 && number == 0;
}

bool send_all(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN || !ready(fd, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

enum class Ended { kWell, kLate, kLost };

Ended converse(int fd, std::string_view request, HealthReply& reply, Deadline deadline) {
  if (!send_all(fd, request, deadline)) return Ended::kLost;
  char room[4096];
  while (!reply.done()) {
    if (!ready(fd, POLLIN, deadline)) return Ended::kLate;
    const ssize_t got = ::recv(fd, room, sizeof room, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return Ended::kLost;
    const std::string back = reply.take({room, static_cast<std::size_t>(got)});
    if (!send_all(fd, back, deadline) && !reply.done()) return Ended::kLost;
  }
  return Ended::kWell;
}

// As the kubelet words it, which is what readers of events know.
ProbeAnswer judge_grpc(const HealthReply& reply) {
  if (!reply.broken().empty()) {
    return grpc_failure("error: health rpc probe failed: " + reply.broken());
  }
  if (reply.grpc_status() == kUnimplemented) {
    return grpc_failure(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)");
  }
  const auto serving = reply.serving();
  if (reply.grpc_status() != 0 || !serving) {
    return grpc_failure(fmt::format(
        "error: health rpc probe failed: the call ended with status {}",
        reply.grpc_status() ? fmt::format("{}", *reply.grpc_status()) : std::string("none")));
  }
  if (*serving != "SERVING") {
    return grpc_failure(fmt::format("service unhealthy (responded with \"{}\")", *serving));
  }
  return {ProbeOutcome::kSuccess, false, "service healthy"};
}

}  // namespace

ProbeAnswer probe_grpc(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop) {
  const auto port = json::get_int(request.handler, {"grpc", "port"}).value_or(0);
  const std::string_view service = json::get_string(request.handler, {"grpc", "service"});
  const Deadline deadline = std::chrono::steady_clock::now() + request.timeout;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(request.timeout).count();
  const std::string address = request.pod_ip.contains(':')
                                  ? fmt::format("[{}]:{}", request.pod_ip, port)
                                  : fmt::format("{}:{}", request.pod_ip, port);
  auto to = PodDialer::resolve(request.pod_ip, static_cast<int>(port));
  if (!to) {
    return {ProbeOutcome::kError, false, fmt::format("{} is not an address", request.pod_ip)};
  }
  const auto made = PodDialer(runtime, request.pod_uid, request.pod_ip).socket_for(*to);
  if (!made) return {ProbeOutcome::kError, false, made.error().message};
  const Socket socket(*made);
  // Whoever waits below is woken by its own socket.
  const std::stop_callback hang_up(stop, [&] { ::shutdown(socket.fd(), SHUT_RDWR); });
  if (!connected(socket.fd(), *to, deadline)) {
    return grpc_failure(
        fmt::format("timeout: failed to connect service \"{}\" within {}s: context deadline "
                    "exceeded",
                    address, seconds));
  }
  HealthReply reply;
  switch (converse(socket.fd(), health_request(address, service, kUserAgent), reply, deadline)) {
    case Ended::kWell:
      return judge_grpc(reply);
    case Ended::kLate:
      return grpc_failure(fmt::format("timeout: health rpc did not complete within {}s", seconds));
    case Ended::kLost:
      break;
  }
  return grpc_failure("error: health rpc probe failed: the server closed the connection");
}

}  // namespace skiff::node
