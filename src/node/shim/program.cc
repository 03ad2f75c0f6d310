#include "node/shim/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "node/loopback/calls.h"
#include "node/shim/descriptors.h"
#include "node/shim/files.h"
#include "node/shim/rootfs.h"
#include "node/shim/user.h"

namespace skiff::node {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

[[noreturn]] void give_up(int error_fd, std::string_view sentence) {
  (void)write_all(error_fd, sentence);
  ::_exit(127);
}

// From the exec on: until then init needs its own.
void drop_capabilities(Capabilities kept) {
  for (int cap = 0; cap <= CAP_LAST_CAP; ++cap) {
    if ((kept & capability(cap)) == 0) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  }
}

void reset_signals() {
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<char*> pointers(const std::vector<std::string>& list) {
  std::vector<char*> out;
  for (const std::string& s : list) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// `argv` says in full what was asked for where the file itself is not the problem.
std::string exec_failure(const std::string& file, int number) {
  if (number == ENOENT) return fmt::format("cannot run {}: its interpreter is missing", file);
  if (number == E2BIG)
    return fmt::format("cannot run {}: arguments and environment are too large", file);
  return fmt::format("cannot run {}: {}", file, std::strerror(number));
}

// Reaps until the program itself ends.
ExitReport supervise(pid_t program, const sigset_t& all) {
  bool killing = false;
  while (true) {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program) continue;
      if (WIFSIGNALED(status)) {
        return {.exit_code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
      }
      return {.exit_code = WEXITSTATUS(status), .signal = killing ? SIGKILL : 0};
    }
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&all, &info);
    if (signal < 0 || signal == SIGCHLD) continue;
    if (signal == kill_all_signal()) {
      killing = true;
      ::kill(program, SIGKILL);
    } else {
      ::kill(program, signal);
    }
  }
}

void prepare(const InitRequest& request) {
  // The shim's end must be the container's end, whatever the program does.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // A shim that died before the line above would not be noticed: it must answer once after it.
  const Fd calls = request.led ? install_filter() : Fd();
  const int given = calls.get();
  char go = 'r';
  if (!send_descriptors(request.go_fd, {&go, 1}, {&given, calls.valid() ? 1U : 0U}) ||
      ::read(request.go_fd, &go, 1) != 1) {
    ::_exit(127);
  }
  ::setsid();
  if (!request.privileged) return;
  if (!request.group.empty()) {
    if (const auto entered = request.cgroups.enter(request.group); !entered) {
      give_up(request.error_fd, entered.error().message);
    }
  }
  // The shim is spared by the kernel's out-of-memory killer; the program must not be.
  (void)write_plain("/proc/self/oom_score_adj", std::to_string(request.container.oom_score_adj));
  if (::unshare(CLONE_NEWNS) != 0) {
    give_up(request.error_fd, fmt::format("no mount namespace: {}", std::strerror(errno)));
  }
  const auto entered = enter_root({.pod_folder = request.pod_folder,
                                   .sandbox = request.sandbox,
                                   .container = request.container,
                                   .termination_file = request.termination_file,
                                   .own_network = request.own_network});
  if (!entered) give_up(request.error_fd, entered.error().message);
}

}  // namespace

void run_program(const ProgramRequest& request) {
  const ContainerSpec& spec = request.container;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const auto use = [&](int fd, int as) { ::dup2(fd < 0 ? null_fd : fd, as); };
  use(request.in_fd, STDIN_FILENO);
  use(request.out_fd, STDOUT_FILENO);
  use(request.err_fd, STDERR_FILENO);
  // So that ^C reaches the program, and the size of the window what asks for it.
  if (request.tty) ::ioctl(STDIN_FILENO, TIOCSCTTY, 0);
  if (request.privileged) {
    drop_capabilities(spec.capabilities);
    if (const auto changed = become_user(spec); !changed) {
      give_up(request.error_fd, changed.error().message);
    }
    // Forgotten by the kernel when the user changes.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  if (spec.no_new_privileges) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const std::string folder = spec.working_dir.empty() ? "/" : spec.working_dir;
  if (::chdir(folder.c_str()) != 0) {
    give_up(request.error_fd,
            fmt::format("cannot enter the working directory {}: {}", folder, std::strerror(errno)));
  }
  if (spec.argv.empty()) give_up(request.error_fd, "the container has no command");
  const auto file = find_program(spec.argv[0], spec.env);
  if (!file) give_up(request.error_fd, file.error().message);
  const std::vector<char*> argv = pointers(spec.argv);
  const std::vector<char*> env = pointers(spec.env);
  ::umask(022);
  reset_signals();
  ::execve(file->c_str(), argv.data(), env.data());
  give_up(request.error_fd, exec_failure(*file, errno));
}

// Without a pid namespace nobody else ends what the program left running. Init is their reaper, so
// all of them are its children or will be.
void kill_descendants() {
  for (int round = 0; round < 1000; ++round) {
    const auto text = read_file(fmt::format("/proc/self/task/{}/children", ::getpid()));
    bool any = false;
    for (const std::string_view word : split(text ? *text : "", ' ')) {
      const int pid = std::atoi(std::string(word).c_str());
      if (pid <= 0) continue;
      any = true;
      ::kill(pid, SIGKILL);
    }
    if (!any) return;
    // Every round waits for at least one child, so this ends as soon as they are gone.
    ::waitpid(-1, nullptr, 0);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

int kill_all_signal() { return SIGRTMAX - 1; }

Result<std::string> find_program(const std::string& name, const std::vector<std::string>& env) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) == 0) return name;
    return fail(Code::kNotFound, fmt::format("cannot run {}: there is no such file", name));
  }
  std::string path(kDefaultPath);
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  }
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return fail(Code::kNotFound,
              fmt::format("cannot run \"{}\": there is no such program in PATH ({})", name, path));
}

void run_init(const InitRequest& request) {
  // Blocked signals wait until supervise() takes them, also those sent before the program runs.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  prepare(request);
  const pid_t program = ::fork();
  if (program < 0) {
    give_up(request.error_fd, fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (program == 0) {
    run_program({.container = request.container,
                 .privileged = request.privileged,
                 .in_fd = request.in_fd,
                 .out_fd = request.out_fd,
                 .err_fd = request.err_fd,
                 .error_fd = request.error_fd,
                 .tty = request.container.tty});
  }
  // Only the report's descriptor stays: the pipes must close when the program closes them, and the
  // shim's socket must not outlive the shim.
  ::dup2(request.report_fd, 3);
  ::close_range(4, ~0U, 0);
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) ::dup2(null_fd, fd);
  ::prctl(PR_SET_NAME, "skiff-init");
  const ExitReport report = supervise(program, all);
  if (!request.privileged) kill_descendants();
  (void)write_all(3, {reinterpret_cast<const char*>(&report), sizeof report});
  ::_exit(0);
}

}  // namespace skiff::node
