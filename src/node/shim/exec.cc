#include "node/shim/exec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/json.h"
#include "node/loopback/calls.h"
#include "node/shim/descriptors.h"
#include "node/shim/program.h"

namespace skiff::node {
namespace {

// What the guard needs; everything is opened before the fork, so that failures are told by the
// shim.
struct Guard {
  const PodContext& pod;
  ContainerSpec program = {};
  std::string group = {};
  int connection = -1;
  int streams[3] = {-1, -1, -1};
  bool tty = false;
  Fd pid_namespace = {};
  Fd mount_namespace = {};
  Fd container = {};  // the container's first process
  Fd error_read = {};
  Fd error_write = {};
  Fd calls = {};  // takes what asks about the program's calls; not valid: they are not led
  pid_t shim = 0;
};

// A guard may live for hours: it must hold neither the shim's socket nor anybody's pipes.
void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = 0;
  for (const int fd : kept) {
    if (fd < 0) continue;
    const auto number = static_cast<unsigned>(fd);
    if (number > next) ::close_range(next, number - 1, 0);
    next = number + 1;
  }
  ::close_range(next, ~0U, 0);
}

[[noreturn]] void answer(const Guard& guard, const json::object& text) {
  (void)write_all(guard.connection, json::serialize(text) + "\n");
  ::_exit(0);
}

[[noreturn]] void refuse(const Guard& guard, std::string_view what) {
  answer(guard, {{"error", fmt::format("{}: {}", what, std::strerror(errno))}});
}

[[noreturn]] void run_inside(const Guard& guard) {
  if (guard.pod.file.privileged) {
    const auto give_up = [&](const std::string& why) {
      (void)write_all(guard.error_write.get(), why);
      ::_exit(127);
    };
    if (!guard.group.empty()) {
      const auto entered = guard.pod.cgroups.enter(guard.group);
      if (!entered) give_up(entered.error().message);
    }
    (void)write_plain("/proc/self/oom_score_adj", std::to_string(guard.program.oom_score_adj));
    // The kernel lets nobody change files under a thread that shares its root; a sanitizer has one.
    ::unshare(CLONE_FS);
    if (::setns(guard.mount_namespace.get(), CLONE_NEWNS) != 0) {
      give_up(fmt::format("cannot enter the container's files: {}", std::strerror(errno)));
    }
  }
  run_program({.container = guard.program,
               .privileged = guard.pod.file.privileged,
               .in_fd = guard.streams[0],
               .out_fd = guard.streams[1],
               .err_fd = guard.streams[2],
               .error_fd = guard.error_write.get(),
               .tty = guard.tty});
}

// Until the program ends, whoever ends it.
int wait_for_program(const Guard& guard, pid_t program) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, program, 0)));
  pollfd waits[] = {{.fd = process.get(), .events = POLLIN, .revents = 0},
                    {.fd = guard.connection, .events = POLLIN, .revents = 0},
                    {.fd = guard.container.get(), .events = POLLIN, .revents = 0}};
  while (::poll(waits, 3, -1) < 0 && errno == EINTR) {
  }
  if (waits[0].revents == 0) {
    ::kill(-program, SIGKILL);
    ::kill(program, SIGKILL);
  }
  int status = 0;
  while (::waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

[[noreturn]] void run_guard(Guard& guard) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard.shim) ::_exit(127);
  ::prctl(PR_SET_NAME, "skiff-exec");
  ::setsid();
  if (guard.calls.valid()) {
    const Fd calls = install_filter();
    const int given = calls.get();
    (void)send_descriptors(guard.calls.get(), "c", {&given, calls.valid() ? 1U : 0U});
    guard.calls.reset();
  }
  close_all_but({0, 1, 2, guard.connection, guard.streams[0], guard.streams[1], guard.streams[2],
                 guard.pid_namespace.get(), guard.mount_namespace.get(), guard.container.get(),
                 guard.error_read.get(), guard.error_write.get()});
  const bool privileged = guard.pod.file.privileged;
  if (privileged && ::setns(guard.pid_namespace.get(), CLONE_NEWPID) != 0) {
    refuse(guard, "cannot enter the container");
  }
  // Without namespaces whatever the program leaves behind comes to the guard, and ends with it.
  if (!privileged) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const pid_t program = ::fork();
  if (program < 0) refuse(guard, "cannot start a process");
  if (program == 0) run_inside(guard);
  for (const int fd : guard.streams) {
    if (fd >= 0) ::close(fd);
  }
  guard.error_write.reset();
  std::string why(512, '\0');
  const ssize_t n = ::read(guard.error_read.get(), why.data(), why.size());
  why.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  const int status = wait_for_program(guard, program);
  if (!privileged) kill_descendants();
  if (!why.empty()) answer(guard, {{"error", why}});
  answer(guard, {{"exitCode", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)}});
}

ContainerSpec program_of(const Container& container, const ExecSpec& spec) {
  ContainerSpec out = container.spec();
  out.argv = spec.argv;
  if (spec.env) out.env = *spec.env;
  if (spec.working_dir) out.working_dir = *spec.working_dir;
  if (spec.uid) out.uid = spec.uid;
  if (spec.gid) out.gid = spec.gid;
  return out;
}

}  // namespace

Result<Fd> start_exec(const PodContext& pod, const Container& container, const ExecSpec& spec,
                      const Fd& connection, const std::vector<Fd>& streams) {
  if (!container.running()) {
    return fail(Code::kNotFound, fmt::format("container {} is not running", spec.container));
  }
  if (streams.size() != 3) return fail(Code::kBadRequest, "exec needs three descriptors");
  Guard guard{.pod = pod,
              .program = program_of(container, spec),
              .group = container.group(),
              .connection = connection.get(),
              .streams = {streams[0].get(), streams[1].get(), streams[2].get()},
              .tty = spec.tty,
              .shim = ::getpid()};
  // The shim is the parent of the container's first process and has not reaped it: the number is
  // still that process's.
  const pid_t init = container.record().pid;
  guard.container.reset(static_cast<int>(::syscall(SYS_pidfd_open, init, 0)));
  if (!guard.container.valid()) return os_failure("cannot look at the container");
  if (pod.file.privileged) {
    const std::string spaces = fmt::format("/proc/{}/ns/", init);
    guard.pid_namespace.reset(::open((spaces + "pid").c_str(), O_RDONLY | O_CLOEXEC));
    guard.mount_namespace.reset(::open((spaces + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!guard.pid_namespace.valid() || !guard.mount_namespace.valid()) return os_failure(spaces);
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  guard.error_read.reset(ends[0]);
  guard.error_write.reset(ends[1]);
  Fd calls;
  if (!pod.file.led.empty()) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return os_failure("cannot make a socket");
    }
    calls.reset(ends[0]);
    guard.calls.reset(ends[1]);
  }
  const pid_t child = ::fork();
  if (child < 0) return os_failure("cannot start a process");
  if (child == 0) run_guard(guard);
  if (!calls.valid()) return Fd();
  guard.calls.reset();
  char word = 0;
  std::vector<Fd> given;
  (void)receive_descriptors(calls.get(), {&word, 1}, given);
  return given.empty() ? Fd() : std::move(given.front());
}

}  // namespace skiff::node
