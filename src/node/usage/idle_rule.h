// When accelerators idle because their input does not come fast enough: the main waste in training.
// Pure: samples in, a sentence out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace skiff::node {

// One look at a container that has GPUs.
struct IdleSample {
  Duration elapsed = {};               // of a clock that never steps back
  std::vector<int> busy_percent = {};  // of each of its GPUs
  std::int64_t cpu_nano = 0;           // what it uses
  std::int64_t cpu_limit_nano = 0;     // what it could use at most
  std::int64_t received_per_s = 0;     // bytes from the network
};

class IdleRule {
 public:
  static constexpr int kIdlePercent = 30;                   // below this a GPU idles
  static constexpr int kFullPercent = 90;                   // from this on the CPU is full
  static constexpr std::int64_t kReadingPerS = 20'000'000;  // from this on it reads its input
  static constexpr std::size_t kSamples = 12;               // in a row, before anything is said
  static constexpr Duration kAgainAfter = std::chrono::minutes(30);

  // The sentence to tell now, of the container known by `key`; `who` names it for people. It speaks
  // only where the GPU idles and something that feeds it is at its limit: a GPU that idles beside
  // an idle CPU waits for something else.
  std::optional<std::string> note(const std::string& key, std::string_view who,
                                  const IdleSample& sample);
  // What is not among these is over.
  void keep_only(const std::set<std::string, std::less<>>& keys);

 private:
  struct Entry {
    std::deque<IdleSample> samples = {};
    std::optional<Duration> told = {};
  };
  std::map<std::string, Entry, std::less<>> entries_ = {};
};

}  // namespace skiff::node
