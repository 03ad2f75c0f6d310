// How far a program is, from all that its lines said so far. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "node/progress/progress_line.h"

namespace skiff::node {

class ProgressTracker {
 public:
  // An estimate rests on this many moments, no two of them closer than that: about the last minute
  // of a fast program, the last steps of a slow one.
  static constexpr std::size_t kMoments = 32;
  static constexpr Duration kApart = std::chrono::seconds(2);

  void take(const ProgressLine& line, Time at);

  bool empty() const { return !updated_; }
  // The part that is done, where totals are known: 0 to 1.
  std::optional<double> fraction() const;
  // When it will be done, where that can be told.
  std::optional<Time> estimated_end() const;
  // As status.progress shows it, times as metav1.Time; empty where nothing is known.
  json::object told() const;

 private:
  struct Moment {
    Time at = {};
    double fraction = 0;
  };

  ProgressLine last_ = {};
  std::map<std::string, std::string, std::less<>> metrics_ = {};
  bool steps_go_on_ = false;  // from epoch to epoch: the total is that of all epochs
  bool epoch_done_ = false;   // it was told with what it came to, and there are no steps
  std::optional<Time> first_ = {};
  std::optional<Time> updated_ = {};
  std::deque<Moment> moments_ = {};
};

}  // namespace skiff::node
