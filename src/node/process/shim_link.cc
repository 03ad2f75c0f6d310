#include "node/process/shim_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/strings.h"
#include "node/shim/wire.h"

namespace skiff::node {

Result<std::string> read_to_end(int fd, int patience_ms) {
  std::string text;
  char piece[4096];
  while (true) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return fail(Code::kTimeout, "the pod's shim does not answer");
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

Result<Fd> connect_shim(const std::string& pod_folder) {
  // Through a descriptor, because a socket's path may have no more than 107 bytes.
  const Fd folder(::open(pod_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return os_failure(pod_folder);
  Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return os_failure("socket");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  fmt::format_to_n(address.sun_path, sizeof address.sun_path - 1, "/proc/self/fd/{}/shim.sock",
                   folder.get());
  if (::connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    // A socket that nobody listens on is as good as none.
    if (errno == ECONNREFUSED) errno = ENOENT;
    return os_failure("the pod's shim does not answer");
  }
  return connection;
}

Result<pid_t> shim_pid(const Fd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return os_failure("SO_PEERCRED");
  }
  return peer.pid;
}

Result<void> ask_shim(const std::string& pod_folder, const json::object& request,
                      std::chrono::milliseconds patience) {
  SKIFF_ASSIGN(const Fd connection, connect_shim(pod_folder));
  if (const std::string line = json::serialize(request) + "\n";
      ::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return os_failure("the pod's shim went away");
  }
  SKIFF_ASSIGN(const std::string text,
               read_to_end(connection.get(), static_cast<int>(patience.count())));
  if (text.empty()) return fail(Code::kServiceUnavailable, "the pod's shim went away");
  SKIFF_ASSIGN(const json::value answer, json::parse(trim(text)));
  if (auto error = answered_error(answer)) return std::unexpected(std::move(*error));
  return {};
}

bool wait_for_end(pid_t pid, std::chrono::milliseconds patience) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) == 1;
}

ShimWatch::ShimWatch(std::function<void(const std::string&, bool)> heard)
    : heard_(std::move(heard)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = stop_.get()}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

ShimWatch::~ShimWatch() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

Result<void> ShimWatch::add(const std::string& pod_uid, const std::string& pod_folder) {
  SKIFF_ASSIGN(Fd connection, connect_shim(pod_folder));
  if (!write_all(connection.get(), "{\"op\":\"watch\"}\n")) return os_failure("watch");
  const std::lock_guard lock(mutex_);
  const int fd = connection.get();
  if (const auto old = connections_.find(pod_uid); old != connections_.end()) {
    uids_.erase(old->second.get());
  }
  uids_[fd] = pod_uid;
  connections_[pod_uid] = std::move(connection);
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return {};
}

void ShimWatch::remove(const std::string& pod_uid) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(pod_uid);
  if (found == connections_.end()) return;
  uids_.erase(found->second.get());
  connections_.erase(found);
}

void ShimWatch::run() {
  while (true) {
    epoll_event events[64];
    const int n = ::epoll_wait(epoll_.get(), events, 64, -1);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == stop_.get()) return;
      hear(events[i].data.fd);
    }
  }
}

void ShimWatch::hear(int fd) {
  std::string uid;
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = uids_.find(fd);
    if (found == uids_.end()) return;
    char bytes[256];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    uid = found->second;
    gone = n <= 0;
    if (gone) {
      uids_.erase(found);
      connections_.erase(uid);
    }
  }
  heard_(uid, gone);
}

}  // namespace skiff::node
