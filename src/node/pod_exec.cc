#include "node/pod_exec.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>

#include "node/shim/files.h"

namespace skiff::node {
namespace {

using apiserver::Terminal;

// What waits for a slow reader; the program then waits, too.
constexpr std::size_t kOutputBytes = 256 * 1024;

struct Pipes {
  // Ours.
  Fd in = {}, out = {}, err = {};
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

Result<Pipes> make_pipes(const apiserver::ExecOptions& options) {
  Pipes out;
  if (options.tty) {
    int controller = -1, program = -1;
    if (::openpty(&controller, &program, nullptr, nullptr, nullptr) != 0) {
      return os_failure("cannot make a terminal");
    }
    out.out.reset(controller);
    out.program_in.reset(program);
    out.program_out.reset(::fcntl(program, F_DUPFD_CLOEXEC, 3));
    out.program_err.reset(::fcntl(program, F_DUPFD_CLOEXEC, 3));
    out.in.reset(::fcntl(controller, F_DUPFD_CLOEXEC, 3));
    ::fcntl(controller, F_SETFD, FD_CLOEXEC);
    ::fcntl(program, F_SETFD, FD_CLOEXEC);
  } else {
    if (options.in) SKIFF_TRY(make_pipe(out.program_in, out.in));
    SKIFF_TRY(make_pipe(out.out, out.program_out));
    SKIFF_TRY(make_pipe(out.err, out.program_err));
  }
  for (const Fd* fd : {&out.in, &out.out, &out.err}) {
    if (fd->valid()) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  return out;
}

class PodTerminal final : public Terminal {
 public:
  PodTerminal(Pipes pipes, std::unique_ptr<ExecSession> session, bool tty)
      : pipes_(std::move(pipes)),
        session_(std::move(session)),
        tty_(tty),
        nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { serve(); }) {}
  ~PodTerminal() override {
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
    const winsize size{.ws_row = static_cast<unsigned short>(rows),
                       .ws_col = static_cast<unsigned short>(columns),
                       .ws_xpixel = 0,
                       .ws_ypixel = 0};
    ::ioctl(pipes_.out.get(), TIOCSWINSZ, &size);
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
  bool drain(const Fd& fd, Channel channel) {
    char piece[32 * 1024];
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (output_bytes_ >= kOutputBytes) return true;
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

  void feed() {
    const std::lock_guard lock(mutex_);
    while (!input_.empty() && pipes_.in.valid()) {
      const ssize_t n = ::write(pipes_.in.get(), input_.data(), input_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) {  // it reads no more
        input_.clear();
        input_ended_ = true;
        pipes_.in.reset();
        return;
      }
      input_.erase(0, static_cast<std::size_t>(n));
    }
    if (input_.empty() && input_ended_ && !tty_) pipes_.in.reset();
  }

  void serve() {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    bool out_open = true, err_open = pipes_.err.valid();
    std::optional<Result<int>> end;
    while (true) {
      bool room = true, more_input = false;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        room = output_bytes_ < kOutputBytes;
        more_input = !input_.empty();
      }
      // What it said last is taken before its end is told; others may hold its pipes for ever.
      if (end && room) {
        if (out_open) (void)drain(pipes_.out, Channel::kOut);
        if (err_open) (void)drain(pipes_.err, Channel::kErr);
        const std::lock_guard lock(mutex_);
        ended_ = true;
        exit_code_ = std::move(*end);
        break;
      }
      pollfd waits[] = {{nudge_.get(), POLLIN, 0},
                        {end ? -1 : session_->fd(), POLLIN, 0},
                        {out_open && room ? pipes_.out.get() : -1, POLLIN, 0},
                        {err_open && room ? pipes_.err.get() : -1, POLLIN, 0},
                        {more_input && pipes_.in.valid() ? pipes_.in.get() : -1, POLLOUT, 0}};
      (void)::poll(waits, 5, -1);
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t ignored = ::read(nudge_.get(), &count, sizeof count);
      feed();
      if (waits[2].revents != 0) out_open = drain(pipes_.out, Channel::kOut);
      if (waits[3].revents != 0) err_open = drain(pipes_.err, Channel::kErr);
      if (!end) end = session_->ended();
      if (waits[2].revents != 0 || waits[3].revents != 0) tell();
    }
    tell();
  }

  Pipes pipes_;
  const std::unique_ptr<ExecSession> session_;
  const bool tty_;
  const Fd nudge_;
  mutable std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::string input_ = {};
  bool input_ended_ = false;
  std::vector<Piece> output_ = {};
  std::size_t output_bytes_ = 0;
  bool ended_ = false;
  Result<int> exit_code_ = 0;
  std::function<void()> wake_ = {};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Terminal>> open_terminal(Runtime& runtime, std::string_view pod_uid,
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
  return std::make_unique<PodTerminal>(std::move(pipes), std::move(*session), options.tty);
}

}  // namespace skiff::node
