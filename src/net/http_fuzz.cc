// Requests as they come off a socket, through the real server. Parts divided by 0xff are sent one
// after another; whatever comes, the server answers or hangs up, and goes on serving.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/fuzz.h"
#include "net/server.h"

namespace {

using namespace skiff;

int connect_to(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = -1;
  // A machine that is out of ports for a moment is no finding; a server that takes nothing is.
  for (int attempt = 0; fd < 0 && attempt < 500; ++attempt) {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      break;
    }
    if (fd >= 0) close(fd);
    fd = -1;
    usleep(10'000);
  }
  SKIFF_CHECK(fd >= 0, std::string("the server takes connections: ") + std::strerror(errno));
  // Many connections come and go; none should wait in TIME_WAIT for its port.
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

net::Server& server() {
  static const auto kServer = [] {
    net::ServerOptions options{.listeners = {{}}, .header_bytes = 4096, .body_bytes = 8192};
    options.threads = 1;
    auto started = net::Server::start(std::move(options), [](const http::Request& request) {
      http::Response response{.body = request.method + " " + request.target};
      for (const auto& [name, value] : request.headers) response.headers.emplace_back(name, value);
      return response;
    });
    SKIFF_CHECK(started.has_value(), started ? "" : started.error().message);
    return std::move(*started);
  }();
  return *kServer;
}

}  // namespace

SKIFF_FUZZ(text) {
  const int fd = connect_to(server().port(0));
  while (!text.empty()) {
    const std::string_view part = next_part(text);
    if (send(fd, part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
  }
  shutdown(fd, SHUT_WR);
  std::string answer(4096, '\0');
  std::size_t total = 0;
  while (true) {
    const ssize_t got = recv(fd, answer.data() + total, answer.size() - total, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
    SKIFF_CHECK(got > 0, "the server neither answers nor hangs up");
    if (total < 5) total += static_cast<std::size_t>(got);
  }
  if (total >= 5) SKIFF_CHECK(answer.starts_with("HTTP/"), "it answers in HTTP");
  close(fd);
}
