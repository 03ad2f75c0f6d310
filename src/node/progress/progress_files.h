// Reads what is new in the log of one run of a container and in its file of JSON lines.
#pragma once

#include <sys/types.h>

#include <string>

#include "node/progress/progress_scan.h"

namespace skiff::node {

class ProgressFiles {
 public:
  // One look reads at most so much of each file. What a talkative program wrote before that is
  // passed over: only the newest counts.
  static constexpr std::int64_t kLookBytes = 256 * 1024;

  // A file that is not there is empty. Files are opened with care: the program owns one of them.
  void look(const std::string& log, const std::string& file, Time now);
  const ProgressTracker& tracker() const { return scan_.tracker(); }

 private:
  struct Place {
    ino_t inode = 0;
    std::int64_t offset = 0;
  };
  struct Piece {
    std::string bytes = {};
    bool follows = true;  // on the piece before
    bool inside = false;  // it may begin inside a line
  };
  static Piece read_on(const std::string& path, Place& place);

  Place log_ = {}, file_ = {};
  ProgressScan scan_ = {};
};

}  // namespace skiff::node
