#include "node/health/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace skiff::node {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How late a stop may be noticed.
constexpr milliseconds kSlice{100};

// Takes what is there; false once no writer is left.
bool drain(int fd, std::string& output) {
  char piece[16 * 1024];
  while (true) {
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return true;
    if (n == 0) return false;
    const std::size_t room = kExecOutputBytes - output.size();
    output.append(piece, std::min(room, static_cast<std::size_t>(n)));
  }
}

Result<int> follow(ExecSession& session, int pipe, std::string& output, milliseconds timeout,
                   const std::stop_token& stop) {
  const Clock::time_point begin = Clock::now();
  bool open = true;
  while (true) {
    if (auto ended = session.ended()) {
      if (open) (void)drain(pipe, output);
      return std::move(*ended);
    }
    milliseconds wait = kSlice;
    if (timeout > milliseconds(0)) {
      const auto left = std::chrono::duration_cast<milliseconds>(begin + timeout - Clock::now());
      if (left <= milliseconds(0)) return fail(Code::kTimeout, "the program took too long");
      wait = std::min(wait, left);
    }
    if (stop.stop_requested()) return fail(Code::kTimeout, "nobody waits for the program any more");
    pollfd waits[] = {{.fd = session.fd(), .events = POLLIN, .revents = 0},
                      {.fd = open ? pipe : -1, .events = POLLIN, .revents = 0}};
    (void)::poll(waits, 2, static_cast<int>(wait.count()) + 1);
    if (open && waits[1].revents != 0) open = drain(pipe, output);
  }
}

}  // namespace

ExecOutput exec_and_read(Runtime& runtime, std::string_view pod_uid, ExecSpec spec,
                         milliseconds timeout, const std::stop_token& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return {.exit_code = fail(Code::kInternal, std::string("no pipe: ") + std::strerror(errno))};
  }
  // The program's end blocks, as programs expect.
  ::fcntl(ends[1], F_SETFL, 0);
  spec.out_fd = spec.err_fd = ends[1];
  auto session = runtime.exec(pod_uid, spec);
  ::close(ends[1]);
  ExecOutput out;
  out.exit_code = session ? follow(**session, ends[0], out.output, timeout, stop)
                          : Result<int>(std::unexpected(session.error()));
  ::close(ends[0]);
  return out;
}

}  // namespace skiff::node
