#include "node/streams/pod_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "node/loopback/lead.h"
#include "node/net/addresses.h"
#include "node/shim/files.h"

namespace skiff::node {
namespace {

using apiserver::Peer;

// What waits for a slow reader; the program then waits, too.
constexpr std::size_t kOutputBytes = 256 * 1024;
constexpr std::size_t kPipeBytes = 64 * 1024;  // the kernel's size of a pipe

// How long a program may take to accept a connection.
constexpr int kConnectMs = 10'000;
// How long the end of a container may come after the end of its output.
constexpr int kEndMs = 2'000;
constexpr int kStepMs = 50;

struct Ends {
  Fd in = {}, out = {}, err = {};
};
using Stopped = std::function<bool()>;
// Called once, on the peer's thread; may wait, but not when it is stopped.
using Opener = std::function<Result<Ends>(const Stopped& stopped)>;
// What the end of all output means where there is no session.
using PeerVerdict = std::function<Result<int>(const Stopped& stopped)>;

struct Pipes {
  Ends ours = {};
  // The program's, closed here once it has them.
  Fd program_in = {}, program_out = {}, program_err = {};
};

Result<void> make_pipe(Fd& reading, Fd& writing) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  reading.reset(ends[0]);
  writing.reset(ends[1]);
  return {};
}

void make_patient(const Ends& ends) {
  for (const Fd* fd : {&ends.in, &ends.out, &ends.err}) {
    if (fd->valid()) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
}

Fd copy_of(const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); }

Result<Pipes> make_terminal() {
  int controller = -1, program = -1;
  if (::openpty(&controller, &program, nullptr, nullptr, nullptr) != 0) {
    return os_failure("cannot make a terminal");
  }
  ::fcntl(controller, F_SETFD, FD_CLOEXEC);
  ::fcntl(program, F_SETFD, FD_CLOEXEC);
  Pipes out;
  out.ours.out.reset(controller);
  out.ours.in = copy_of(out.ours.out);
  out.program_in.reset(program);
  out.program_out = copy_of(out.program_in);
  out.program_err = copy_of(out.program_in);
  return out;
}

Result<Pipes> make_pipes(const apiserver::ExecOptions& options) {
  Pipes out;
  if (options.tty) {
    SKIFF_ASSIGN(out, make_terminal());
  } else {
    if (options.in) SKIFF_TRY(make_pipe(out.program_in, out.ours.in));
    SKIFF_TRY(make_pipe(out.ours.out, out.program_out));
    SKIFF_TRY(make_pipe(out.ours.err, out.program_err));
  }
  make_patient(out.ours);
  return out;
}

// Which network a socket is in; nothing where the kernel does not tell (before Linux 5.14).
std::optional<std::uint64_t> network_of(int socket) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) return {};
  return cookie;
}

// Where this socket takes connections; nothing where it does not.
std::optional<int> listens_at(int socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return {};
  }
  sockaddr_storage at{};
  size = sizeof at;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
  if (at.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(at).sin_port);
  if (at.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(at).sin6_port);
  return {};
}

// A socket of the pod's network, connected to its loopback, or to what it has instead.
Result<Ends> connect_port(Runtime& runtime, const std::string& pod_uid, int port,
                          const OwnPort& own, const Stopped& stopped) {
  SKIFF_ASSIGN(const SandboxRecord pod, runtime.inspect(pod_uid));
  const std::uint32_t ip = parse_ip(pod.ports_at).value_or(INADDR_LOOPBACK);
  SKIFF_ASSIGN(const int number, runtime.open_socket(pod_uid));
  Ends out;
  out.out.reset(number);
  if (own(number, port)) {
    return fail(Code::kForbidden,
                fmt::format("port {} is Skiff's own: this pod shares the machine's network, and "
                            "Skiff is not asked in a pod's name",
                            port));
  }
  make_patient(out);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(led_port(ip, static_cast<std::uint16_t>(port)));
  to.sin_addr.s_addr = htonl(ip);
  int problem = 0;
  if (::connect(number, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) problem = errno;
  for (int waited = 0; problem == EINPROGRESS; waited += kStepMs) {
    pollfd wait{number, POLLOUT, 0};
    if (::poll(&wait, 1, kStepMs) > 0) {
      socklen_t size = sizeof problem;
      ::getsockopt(number, SOL_SOCKET, SO_ERROR, &problem, &size);
    } else if (stopped() || waited >= kConnectMs) {
      problem = ETIMEDOUT;
    }
  }
  if (problem != 0) {
    return fail(Code::kServiceUnavailable,
                fmt::format("failed to connect to localhost:{} inside the pod: {}", port,
                            std::strerror(problem)));
  }
  out.in = copy_of(out.out);
  return out;
}

Result<Ends> attach(Runtime& runtime, const std::string& pod_uid,
                    const apiserver::ExecOptions& options) {
  Ends out;
  Fd said, complained;
  SKIFF_TRY(make_pipe(out.out, said));
  SKIFF_TRY(make_pipe(out.err, complained));
  SKIFF_ASSIGN(const int input,
               runtime.attach(pod_uid, options.container, options.in || options.tty, said.get(),
                              complained.get()));
  out.in.reset(input);
  make_patient(out);
  return out;
}

// The container ends a moment after its output; where it does not, this reader was left behind.
Result<int> attached_end(Runtime& runtime, const std::string& pod_uid, const std::string& container,
                         const Stopped& stopped) {
  for (int waited = 0; waited < kEndMs && !stopped(); waited += kStepMs) {
    const auto record = runtime.inspect(pod_uid);
    const bool runs = record && record->alive &&
                      std::ranges::any_of(record->containers, [&](const ContainerRecord& one) {
                        return one.name == container && one.state == ContainerState::kRunning;
                      });
    if (!runs) return 0;
    ::usleep(kStepMs * 1000);
  }
  return fail(Code::kServiceUnavailable,
              "the container runs on, but its output came faster than it was read here; "
              "its log has all of it");
}

class PodPeer final : public Peer {
 public:
  struct Parts {
    Opener open = {};
    std::unique_ptr<ExecSession> session = {};
    PeerVerdict verdict = {};  // without a session
    bool tty = false;
  };

  explicit PodPeer(Parts parts)
      : open_(std::move(parts.open)),
        session_(std::move(parts.session)),
        verdict_(std::move(parts.verdict)),
        tty_(parts.tty),
        nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { serve(); }) {}
  ~PodPeer() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_ = nullptr;
    }
    nudge();
    thread_.join();
  }

  void write(std::string_view bytes) override {
    {
      const std::lock_guard lock(mutex_);
      if (!input_ended_) input_ += bytes;
    }
    nudge();
  }
  std::size_t backlog() const override {
    const std::lock_guard lock(mutex_);
    return input_.size();
  }
  void end_input() override {
    {
      const std::lock_guard lock(mutex_);
      input_ended_ = true;
    }
    nudge();
  }
  void resize(int columns, int rows) override {
    if (!tty_ || columns <= 0 || rows <= 0) return;
    {
      const std::lock_guard lock(mutex_);
      size_ = {.ws_row = static_cast<unsigned short>(rows),
               .ws_col = static_cast<unsigned short>(columns),
               .ws_xpixel = 0,
               .ws_ypixel = 0};
    }
    nudge();
  }
  bool read(std::vector<Piece>& out, std::function<void()> wake) override {
    const std::lock_guard lock(mutex_);
    for (Piece& piece : output_) out.push_back(std::move(piece));
    const bool was_full = output_bytes_ >= kOutputBytes;
    output_.clear();
    output_bytes_ = 0;
    if (was_full) nudge();
    if (out.empty() && !ended_) wake_ = std::move(wake);
    return !out.empty() || !ended_;
  }
  Result<int> exit_code() override {
    const std::lock_guard lock(mutex_);
    return exit_code_;
  }

 private:
  void nudge() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(nudge_.get(), &one, sizeof one);
  }

  void tell() {
    std::function<void()> wake;
    {
      const std::lock_guard lock(mutex_);
      wake = std::exchange(wake_, nullptr);
    }
    if (wake) wake();
  }

  // False once no writer is left.
  bool drain(const Fd& fd, Channel channel, std::size_t most = kOutputBytes) {
    char piece[32 * 1024];
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (output_bytes_ >= most) return true;
      }
      const ssize_t n = ::read(fd.get(), piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) return false;  // EIO: nobody holds the terminal's other end
      const std::lock_guard lock(mutex_);
      output_.push_back({channel, std::string(piece, static_cast<std::size_t>(n))});
      output_bytes_ += static_cast<std::size_t>(n);
    }
  }

  // True where the program took something.
  bool feed() {
    const std::lock_guard lock(mutex_);
    if (const auto size = std::exchange(size_, {})) ::ioctl(ends_.in.get(), TIOCSWINSZ, &*size);
    bool took = false;
    while (!input_.empty() && ends_.in.valid()) {
      const ssize_t n = ::write(ends_.in.get(), input_.data(), input_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return took;
      if (n < 0) {  // it reads no more
        input_.clear();
        input_ended_ = true;
        ends_.in.reset();
        return true;
      }
      input_.erase(0, static_cast<std::size_t>(n));
      took = true;
    }
    if (!ends_.in.valid()) input_.clear();
    if (input_.empty() && input_ended_ && !tty_ && ends_.in.valid()) {
      ::shutdown(ends_.in.get(), SHUT_WR);  // a port; a pipe ends when it is closed
      ends_.in.reset();
    }
    return took;
  }

  void conclude(Result<int> end) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      exit_code_ = std::move(end);
    }
    tell();
  }

  // What is to be waited for; nothing where the peer is no longer wanted.
  struct Wanted {
    bool stop = false, room = true, input = false;
  };
  Wanted wanted() const {
    const std::lock_guard lock(mutex_);
    return {.stop = stopping_, .room = output_bytes_ < kOutputBytes, .input = !input_.empty()};
  }

  void serve() {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    const Stopped stopped = [this] { return wanted().stop; };
    auto opened = open_(stopped);
    if (!opened) return conclude(std::unexpected(opened.error()));
    ends_ = std::move(*opened);
    bool out_open = ends_.out.valid(), err_open = ends_.err.valid();
    std::optional<Result<int>> end;
    while (true) {
      const Wanted now = wanted();
      if (now.stop) return;
      // What it said last is taken before its end is told: all that both pipes hold, but no more,
      // for others may hold them and write for ever.
      if (end && now.room) {
        if (out_open) (void)drain(ends_.out, Channel::kOut, kOutputBytes + kPipeBytes);
        if (err_open) (void)drain(ends_.err, Channel::kErr, kOutputBytes + 3 * kPipeBytes);
        return conclude(std::move(*end));
      }
      pollfd waits[] = {{nudge_.get(), POLLIN, 0},
                        {!end && session_ ? session_->fd() : -1, POLLIN, 0},
                        {out_open && now.room ? ends_.out.get() : -1, POLLIN, 0},
                        {err_open && now.room ? ends_.err.get() : -1, POLLIN, 0},
                        {now.input && ends_.in.valid() ? ends_.in.get() : -1, POLLOUT, 0}};
      (void)::poll(waits, 5, -1);
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t ignored = ::read(nudge_.get(), &count, sizeof count);
      bool news = feed();
      if (waits[2].revents != 0) out_open = drain(ends_.out, Channel::kOut);
      if (waits[3].revents != 0) err_open = drain(ends_.err, Channel::kErr);
      news = news || waits[2].revents != 0 || waits[3].revents != 0;
      if (!end && session_) end = session_->ended();
      if (!session_ && !out_open && !err_open) end = verdict_(stopped);
      if (news) tell();
    }
  }

  const Opener open_;
  Ends ends_ = {};  // the thread's alone
  const std::unique_ptr<ExecSession> session_;
  const PeerVerdict verdict_;
  const bool tty_;
  const Fd nudge_;
  mutable std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::string input_ = {};
  bool input_ended_ = false;
  std::optional<winsize> size_ = {};  // to be set
  std::vector<Piece> output_ = {};
  std::size_t output_bytes_ = 0;
  bool ended_ = false;
  Result<int> exit_code_ = 0;
  std::function<void()> wake_ = {};
  std::thread thread_;  // last: it uses all of the above
};

// For streams that are open already.
Opener ready(Ends ends) {
  return [ends = std::make_shared<Ends>(std::move(ends))](const Stopped&) -> Result<Ends> {
    return std::move(*ends);
  };
}

}  // namespace

Result<std::unique_ptr<Peer>> open_program(Runtime& runtime, std::string_view pod_uid,
                                           const apiserver::ExecOptions& options) {
  SKIFF_ASSIGN(Pipes pipes, make_pipes(options));
  ExecSpec spec{.container = options.container,
                .argv = options.command,
                .in_fd = pipes.program_in.get(),
                .out_fd = pipes.program_out.get(),
                .err_fd = pipes.program_err.get(),
                .tty = options.tty};
  auto session = runtime.exec(pod_uid, spec);
  if (!session) {
    if (session.error().code != Code::kNotFound) return std::unexpected(session.error());
    return fail(Code::kInternal, "unable to upgrade connection: container not found (\"" +
                                     options.container + "\")");
  }
  pipes.program_in.reset();
  pipes.program_out.reset();
  pipes.program_err.reset();
  return std::make_unique<PodPeer>(PodPeer::Parts{
      .open = ready(std::move(pipes.ours)), .session = std::move(*session), .tty = options.tty});
}

std::unique_ptr<Peer> open_container(Runtime& runtime, std::string_view pod_uid,
                                     const apiserver::ExecOptions& options) {
  const std::string uid(pod_uid);
  return std::make_unique<PodPeer>(PodPeer::Parts{
      .open = [&runtime, uid, options](const Stopped&) { return attach(runtime, uid, options); },
      .verdict =
          [&runtime, uid, options](const Stopped& stopped) {
            return attached_end(runtime, uid, options.container, stopped);
          },
      .tty = options.tty});
}

bool skiffs_own(int socket, int port) {
  const auto network = network_of(socket);
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    int number = -1;
    (void)std::from_chars(name.data(), name.data() + name.size(), number);
    // Where the kernel does not tell networks apart, all are taken for one.
    if (listens_at(number) == port && network_of(number) == network) return true;
  }
  return false;
}

std::unique_ptr<Peer> open_port(Runtime& runtime, std::string_view pod_uid, int port, OwnPort own) {
  return std::make_unique<PodPeer>(PodPeer::Parts{
      .open =
          [&runtime, uid = std::string(pod_uid), port, own = std::move(own)](
              const Stopped& stopped) { return connect_port(runtime, uid, port, own, stopped); },
      .verdict = [](const Stopped&) -> Result<int> { return 0; }});
}

}  // namespace skiff::node
