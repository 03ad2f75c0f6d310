// How far replicas are by the output that is being followed. A job's status is told every few
// seconds; who watches the lines scroll expects the bar to move with them. From any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"
#include "node/progress/progress_tracker.h"

namespace skiff::cli {

class HeardProgress {
 public:
  // A line of a replica's output, as the program wrote it.
  void hear(std::string_view replica, std::string_view line, Time at);

  // The job with what was heard in place of status.progress, where that is the same count of the
  // same replica and further on; else the job as it is. A program may count in a file and chat in
  // its log: the status knows which of the two goes first.
  json::value brought_up_to_date(const json::value& job) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, node::ProgressTracker, std::less<>> replicas_;
};

}  // namespace skiff::cli
