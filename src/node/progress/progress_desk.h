// What is known of the progress of this node's training pods, and when to tell it: seldom enough
// that a thousand pods are no burden to the API. From any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "node/progress/progress_files.h"

namespace skiff::node {

// The annotation of a pod: {"pytorch": {"step": 10, ...}}, by container.
inline constexpr std::string_view kProgressAnnotation = "training.skiff.dev/progress";
// Where a program finds the path of its own file of JSON lines.
inline constexpr std::string_view kProgressVariable = "SKIFF_PROGRESS_FILE";

// A run of a container of a training pod.
struct ProgressTarget {
  std::string uid = {};
  std::string container = {};
  int attempt = 0;
  std::string log = {};
  std::string file = {};
  bool leads = false;  // the first of its role: its job's status is made from it
  bool ended = false;  // this is the last look
};

struct ProgressNews {
  std::string uid = {};
  json::object told = {};  // the annotation's value
};

class ProgressDesk {
 public:
  // How long a pod's news waits for the next: of those that lead, and of the others, whose progress
  // only a person who looks closely reads.
  static constexpr Duration kLeaderEvery = std::chrono::seconds(5);
  static constexpr Duration kOtherEvery = std::chrono::seconds(30);
  // Of the others all together no more than two a second.
  static constexpr Duration kOtherShare = std::chrono::milliseconds(500);

  // Looks at these runs and says what is to be told now. `others`: how many training pods that do
  // not lead run on this node; `elapsed`: of a clock that never steps back.
  std::vector<ProgressNews> look(const std::vector<ProgressTarget>& targets, std::size_t others,
                                 Duration elapsed, Time now);
  void forget(std::string_view uid);
  std::size_t size() const;

 private:
  struct Run {
    int attempt = 0;
    ProgressFiles files = {};
    json::object told = {};
  };
  struct PodState {
    std::map<std::string, Run, std::less<>> runs = {};  // by container
    std::optional<Duration> published = {};
    json::object last = {};
  };

  mutable std::mutex mutex_;
  std::map<std::string, PodState, std::less<>> pods_ = {};
};

}  // namespace skiff::node
