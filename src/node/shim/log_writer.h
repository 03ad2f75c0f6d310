// Turns what a container prints into the lines of a CRI log file:
//   2026-11-15T20:02:55.123456789Z stdout F text
// F ends a line; P is a piece of a line that goes on in the next entry of the same stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/shim/files.h"

namespace skiff::node {

// Appends entries for `data` to `out`, one for each line. What follows the last newline stays in
// `rest` for the next call; a piece of limits::kLogLineBytes is written as P at once.
void append_log_lines(std::string_view stamp, std::string_view stream, std::string_view data,
                      std::string& rest, std::string& out);

// A progress bar is drawn again and again behind a carriage return and ends its line only with the
// program: what is drawn over is written as P and taken from `rest`. One at the end of `rest` may
// be half of a line's end and stays.
void append_bars(std::string_view stamp, std::string_view stream, std::string& rest,
                 std::string& out);

// The time now as RFC 3339 with nine decimals.
std::string log_stamp();

// One of a container's two output pipes.
class LogPipe {
 public:
  LogPipe() = default;
  LogPipe(Fd read_end, std::string_view stream) : pipe_(std::move(read_end)), stream_(stream) {}

  int fd() const { return pipe_.get(); }
  // What comes from now on goes to `listener`, too. One that does not keep up is dropped: the
  // program never waits for it.
  void copy_to(Fd listener);
  // Moves what is in the pipe, at most `bytes_max`, to the log file. False: all writers are gone
  // and everything is written.
  bool drain(int log_fd, std::size_t bytes_max);
  // Writes the unfinished line, if there is one, and closes the pipe.
  void finish(int log_fd);

 private:
  Fd pipe_ = {};
  std::string stream_ = {};
  std::string rest_ = {};
  std::vector<Fd> listeners_ = {};
};

// The last words of a log for a termination message, as kubelet cuts them: of the last 80 lines the
// last 2048 bytes. `lines` are CRI lines; a first one that is cut is left out.
std::string log_tail(std::string_view lines);

}  // namespace skiff::node
