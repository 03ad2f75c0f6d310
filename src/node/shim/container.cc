#include "node/shim/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "node/log_files.h"
#include "node/shim/descriptors.h"
#include "node/shim/program.h"
#include "node/shim/rootfs.h"
#include "node/shim/user.h"

namespace skiff::node {
namespace {

// What kubelet reads of a termination message.
constexpr std::size_t kMessageBytes = 4096;
// Of the record of an end with such a message, few of its bytes written as six.
constexpr std::int64_t kRecordBytes = 8192;
// Room for a burst while the log's disk is slow.
constexpr int kPipeBytes = 256 * 1024;
// A mount that takes longer (a dead file server) is a failed start.
constexpr int kStartMs = 30'000;
constexpr int kCannotRun = 128;

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Pipe> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_failure("cannot make a socket");
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// The program's three streams, and where the shim holds them.
struct Streams {
  Pipe in = {}, out = {}, err = {};
  // With a terminal this is the program's side of all three.
  Fd terminal = {};

  int program_in() const { return terminal.valid() ? terminal.get() : in.read.get(); }
  int program_out() const { return terminal.valid() ? terminal.get() : out.write.get(); }
  int program_err() const { return terminal.valid() ? terminal.get() : err.write.get(); }
};

Result<Streams> make_streams(const ContainerSpec& spec) {
  Streams made;
  if (spec.tty) {
    int ours = -1, theirs = -1;
    if (::openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0) {
      return os_failure("cannot make a terminal");
    }
    made.out.read.reset(ours);
    made.terminal.reset(theirs);
    made.in.write.reset(::fcntl(ours, F_DUPFD_CLOEXEC, 3));
    ::fcntl(ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(theirs, F_SETFD, FD_CLOEXEC);
    ::fcntl(ours, F_SETFL, O_NONBLOCK);
    return made;
  }
  if (spec.stdin_open) {
    SKIFF_ASSIGN(made.in, make_pipe());
  }
  SKIFF_ASSIGN(made.out, make_pipe());
  SKIFF_ASSIGN(made.err, make_pipe());
  for (Pipe* p : {&made.out, &made.err}) {
    ::fcntl(p->write.get(), F_SETPIPE_SZ, kPipeBytes);
    ::fcntl(p->read.get(), F_SETFL, O_NONBLOCK);
  }
  return made;
}

// The child is the first process of a new pid namespace; the shim itself stays where it is.
pid_t fork_in_namespace(const PodContext& pod) {
  if (!pod.file.privileged) return ::fork();
  // Out of a user namespace there is no way back into the machine's pid namespace.
  if (!own_user_map().whole) {
    return static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0));
  }
  if (::unshare(CLONE_NEWPID) != 0) return -1;
  const pid_t child = ::fork();
  const int number = errno;
  if (child != 0) ::setns(pod.pid_namespace.get(), CLONE_NEWPID);
  errno = number;
  return child;
}

// Until end of file: the exec closed the other end. The text is why it did not come to that.
std::string read_failure(int fd) {
  std::string text;
  char piece[512];
  while (true) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, kStartMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return "its files could not be mounted within 30 seconds";
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
  }
}

// A quarter of the processes and threads that this machine can have: enough for any training, and
// one that forks without end leaves room for the others and for whoever stops it.
std::int64_t fair_pids() {
  constexpr std::int64_t kLeast = 1024;
  constexpr std::int64_t kMost = 32'768;
  std::int64_t most = 0;
  for (const char* path : {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"}) {
    const std::int64_t number = std::atoll(read_file(path).value_or("0").c_str());
    if (number > 0 && (most == 0 || number < most)) most = number;
  }
  return std::clamp(most / 4, kLeast, kMost);
}

std::string last_bytes(const std::string& path, off_t bytes) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = file.valid() ? ::lseek(file.get(), 0, SEEK_END) : 0;
  if (size <= 0) return "";
  std::string text(static_cast<std::size_t>(std::min(size, bytes)), '\0');
  const ssize_t n = ::pread(file.get(), text.data(), text.size(), std::max<off_t>(0, size - bytes));
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string read_log_tail(const std::string& path) {
  // Enough for the lines that are kept, with what the log puts before each of them.
  constexpr off_t kTailBytes = 64 * 1024;
  std::string text = last_bytes(path, kTailBytes);
  // The file may have been begun a moment ago.
  const auto full = full_logs(path);
  if (text.size() < kTailBytes && !full.empty()) {
    text.insert(0, last_bytes(full.back().path, kTailBytes));
  }
  return log_tail(text);
}

}  // namespace

Container::Container(const PodContext& pod, const ContainerSpec& spec) : pod_(pod), spec_(spec) {
  record_.name = spec.name;
  record_.attempt = spec.attempt;
  const std::string base = fmt::format("{}.{}", spec.name, spec.attempt);
  termination_file_ = fmt::format("{}/termination/{}", pod.folder, base);
  if (pod.cgroups.usable() && !pod.file.cgroup.empty()) {
    group_ = fmt::format("{}/{}", pod.file.cgroup, spec.name);
  }
}

Result<std::unique_ptr<Container>> Container::start(const PodContext& pod,
                                                    const ContainerSpec& spec) {
  std::unique_ptr<Container> made(new Container(pod, spec));
  SKIFF_TRY(made->prepare());
  SKIFF_TRY(made->launch());
  return made;
}

// Only the run before this one is kept: a container that ends again and again would fill the disk.
void Container::forget_old_runs() const {
  for (int old = spec_.attempt - 2; old >= 0; --old) {
    const std::string log = log_file(pod_.folder, spec_.name, old);
    ::unlink(fmt::format("{}/termination/{}.{}", pod_.folder, spec_.name, old).c_str());
    ::unlink((state_folder(pod_.folder) + "/" + record_name(spec_.name, old)).c_str());
    for (const FullLog& full : full_logs(log)) ::unlink(full.path.c_str());
    if (::unlink(log.c_str()) != 0) return;  // those before it went with it
  }
}

Result<void> Container::prepare() {
  forget_old_runs();
  const std::string path = log_file(pod_.folder, spec_.name, spec_.attempt);
  SKIFF_TRY(make_folders(path.substr(0, path.rfind('/'))));
  SKIFF_ASSIGN(log_, LogFile::open(path));
  SKIFF_TRY(make_folders(pod_.folder + "/termination"));
  SKIFF_TRY(write_plain(termination_file_, ""));
  ::chmod(termination_file_.c_str(), 0666);
  if (pod_.file.privileged) SKIFF_TRY(mount_memory(spec_.mounts));
  if (!group_.empty()) {
    SKIFF_TRY(
        pod_.cgroups.make(group_, {.memory_bytes = spec_.memory_limit_bytes,
                                   .cpu_limit_milli = spec_.cpu_limit_milli,
                                   .cpu_request_milli = spec_.cpu_request_milli,
                                   .pids = spec_.pids_limit > 0 ? spec_.pids_limit : fair_pids()}));
  }
  return {};
}

Result<void> Container::launch() {
  SKIFF_ASSIGN(Streams streams, make_streams(spec_));
  SKIFF_ASSIGN(Pipe go, make_socket_pair());
  SKIFF_ASSIGN(Pipe error, make_pipe());
  SKIFF_ASSIGN(Pipe report, make_pipe());
  const pid_t init = fork_in_namespace(pod_);
  if (init < 0) return os_failure("cannot start a process");
  if (init == 0) {
    go.read.reset();
    run_init({.pod_folder = pod_.folder,
              .sandbox = pod_.file.spec,
              .container = spec_,
              .termination_file = termination_file_,
              .cgroups = pod_.cgroups,
              .group = group_,
              .privileged = pod_.file.privileged,
              .own_network = pod_.file.own_network,
              .led = !pod_.file.led.empty(),
              .in_fd = streams.program_in(),
              .out_fd = streams.program_out(),
              .err_fd = streams.program_err(),
              .go_fd = go.write.get(),
              .error_fd = error.write.get(),
              .report_fd = report.write.get()});
  }
  if (spec_.stdin_open) input_ = std::move(streams.in.write);
  out_ = LogPipe(std::move(streams.out.read), "stdout");
  err_ = LogPipe(std::move(streams.err.read), "stderr");
  report_ = std::move(report.read);
  streams = {};
  for (Pipe* p : {&go, &error, &report}) p->write.reset();
  record_.pid = init;
  record_.started_at = wall_clock();
  char ready = 0;
  std::vector<Fd> calls;
  if (receive_descriptors(go.read.get(), {&ready, 1}, calls) == 1) {
    (void)write_all(go.read.get(), "g");
  }
  if (!calls.empty()) calls_ = std::move(calls.front());
  // The disk syncs while init mounts.
  const auto written = write_record(pod_.folder, record_);
  std::string why = read_failure(error.read.get());
  if (why.empty() && !written) why = written.error().message;
  if (!why.empty()) {
    fail_start(why);
  } else {
    keep_room(state_folder(pod_.folder), record_name(spec_.name, spec_.attempt), kRecordBytes);
  }
  return {};
}

void Container::save() { saved_ = write_record(pod_.folder, record_).has_value(); }

void Container::fail_start(const std::string& why) {
  ::kill(record_.pid, SIGKILL);
  int status = 0;
  while (::waitpid(record_.pid, &status, 0) < 0 && errno == EINTR) {
  }
  out_.finish(log_.fd());
  err_.finish(log_.fd());
  if (!group_.empty()) (void)pod_.cgroups.remove(group_);
  remove_tree(fmt::format("{}/layers/{}.{}", pod_.folder, record_.name, record_.attempt));
  record_.state = ContainerState::kFailedToStart;
  record_.finished_at = wall_clock();
  record_.exit_code = kCannotRun;
  record_.message = why;
  save();
}

Fd Container::take_input() {
  if (!input_.valid()) return Fd();
  if (spec_.stdin_once) return std::move(input_);
  return Fd(::fcntl(input_.get(), F_DUPFD_CLOEXEC, 3));
}

void Container::drain(LogPipe& pipe, std::size_t bytes_max) {
  (void)pipe.drain(log_.fd(), bytes_max);
  log_.rotate_where_full();
}

void Container::signal(int signal) {
  if (!running()) return;
  const bool alone = !pod_.file.privileged && signal == SIGKILL;
  ::kill(record_.pid, alone ? kill_all_signal() : signal);
}

void Container::finish(int wait_status) {
  // All writers are dead, but where there is no pid namespace one may have got away: take what is
  // there and do not wait for more.
  constexpr std::size_t kAll = ~std::size_t{0};
  if (out_.drain(log_.fd(), kAll)) out_.finish(log_.fd());
  if (err_.drain(log_.fd(), kAll)) err_.finish(log_.fd());
  ExitReport report;
  if (::read(report_.get(), &report, sizeof report) == sizeof report) {
    record_.exit_code = report.exit_code;
    record_.signal = report.signal;
  } else {
    // Init itself was killed, and the kernel killed the rest with it.
    record_.signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : SIGKILL;
    record_.exit_code = 128 + record_.signal;
  }
  record_.state = ContainerState::kExited;
  record_.finished_at = wall_clock();
  if (!group_.empty()) {
    // A container that lost a helper process and still ended well was not killed.
    record_.oom_killed = record_.exit_code != 0 && pod_.cgroups.oom_killed(group_);
  }
  record_.message = termination_message();
  if (spec_.fallback_to_logs && record_.message.empty() && record_.exit_code != 0) {
    record_.message = read_log_tail(log_file(pod_.folder, spec_.name, spec_.attempt));
  }
  save();
  if (!group_.empty()) (void)pod_.cgroups.remove(group_);
  remove_tree(fmt::format("{}/layers/{}.{}", pod_.folder, record_.name, record_.attempt));
  log_.close();
  input_.reset();
}

std::string Container::termination_message() const {
  const Fd file(::open(termination_file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string text(kMessageBytes, '\0');
  const ssize_t n = file.valid() ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace skiff::node
