#include "cli/file_io.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace skiff::cli {

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(Code::kInternal, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return Pipe{.read = Fd(ends[0]), .write = Fd(ends[1])};
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<Listener> listen_on_loopback(int port) {
  Listener out{.fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  const int on = 1;
  ::setsockopt(out.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(out.fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(out.fd.get(), 64) != 0 ||
      ::getsockname(out.fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return fail(Code::kConflict,
                fmt::format("cannot listen on 127.0.0.1:{}: {}", port, std::strerror(errno)));
  }
  out.port = ntohs(at.sin_port);
  return out;
}

}  // namespace skiff::cli
