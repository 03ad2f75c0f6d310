// From the bytes of a log file, or of a file of JSON lines, to what is known of a program's
// progress. Bytes come in pieces of any size.
#pragma once

#include <string>
#include <string_view>

#include "node/progress/progress_tracker.h"

namespace skiff::node {

class ProgressScan {
 public:
  // What shims write (node/shim/log_writer.h): TIME STREAM F|P TEXT. Lines of another form are
  // passed over. A carriage return ends a piece as a newline does: bars are drawn with it.
  void log_bytes(std::string_view bytes);
  // Lines of JSON that the program wrote itself, read at this time. From the first of them on the
  // log is not asked any more: who writes them means it.
  void file_bytes(std::string_view bytes, Time at);
  // The bytes that come next do not follow on those before; `inside`: they may begin inside a line.
  void skip_log(bool inside) { log_rest_.clear(), out_.clear(), err_.clear(), cut_ = inside; }
  void skip_file(bool inside) { file_rest_.clear(), file_cut_ = inside; }

  const ProgressTracker& tracker() const { return tracker_; }

 private:
  void log_line(std::string_view line);
  void text(std::string_view text, Time at);

  ProgressTracker tracker_ = {};
  std::string log_rest_ = {}, file_rest_ = {};  // bytes behind the last newline
  std::string out_ = {}, err_ = {};             // pieces of a line that goes on
  bool cut_ = false, file_cut_ = false;         // up to the next newline it is half a line
  bool own_file_ = false;
};

}  // namespace skiff::node
