// The process that shims are forked from: the program is loaded and linked once, not for each pod,
// and what all shims have in common is in memory once.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "node/shim/descriptors.h"
#include "node/shim/shim.h"

namespace skiff::node {
namespace {

// What ps shows: the argument that the nursery was started with is long enough for a pod's folder.
void show_folder(char* title, std::string_view folder) {
  const std::size_t room = std::strlen(title);
  std::memset(title, 0, room);
  std::memcpy(title, folder.data(), std::min(room, folder.size()));
}

[[noreturn]] void become_shim(char* title, const std::string& folder, int output) {
  ::setsid();
  ::dup2(output, STDOUT_FILENO);
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null_fd, STDIN_FILENO);
  // The nursery's own ends among them.
  ::close_range(3, ~0U, 0);
  show_folder(title, folder);
  ::_exit(run_shim(folder));
}

// False: Skiff is gone, and nobody will ask for a shim again.
bool serve_one(char* title) {
  char folder[PATH_MAX];
  std::vector<Fd> descriptors;
  const ssize_t n = receive_descriptors(STDIN_FILENO, folder, descriptors);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  if (descriptors.size() != 1) return true;
  const int output = descriptors[0].get();
  const pid_t child = ::fork();
  if (child == 0) become_shim(title, std::string(folder, static_cast<std::size_t>(n)), output);
  if (child < 0) {
    (void)write_all(output, fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  return true;
}

void reap(int signals) {
  signalfd_siginfo ignored{};
  while (::read(signals, &ignored, sizeof ignored) > 0) {
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

int shim_main(int argc, char** argv) {
  if (argc < 3) {
    (void)write_all(STDOUT_FILENO, "usage: skiff shim POD-FOLDERS\n");
    return 2;
  }
  ::prctl(PR_SET_NAME, "skiff-nursery");
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  const Fd signals(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.valid()) return 1;
  while (true) {
    pollfd ready[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                      {.fd = signals.get(), .events = POLLIN, .revents = 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return 1;
    if (ready[1].revents != 0) reap(signals.get());
    // Shims go on without it.
    if (ready[0].revents != 0 && !serve_one(argv[2])) ::_exit(0);
  }
}

}  // namespace skiff::node
