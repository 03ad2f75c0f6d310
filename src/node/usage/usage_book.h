// From counters to rates: what each thing used over the last seconds. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"

namespace skiff::node {

// A counter of CPU time and how much memory is held, read at one moment.
struct Sample {
  Duration elapsed = {};  // of a clock that never steps back
  std::int64_t cpu_ns = 0;
  std::optional<std::int64_t> memory_bytes = {};  // absent: it was not read
};

struct Rate {
  std::int64_t cpu_nano = 0;  // thousand-millionths of a CPU
  std::int64_t memory_bytes = 0;
  Duration window = {};
};

class UsageBook {
 public:
  // A rate is the mean over about this long: less says little, more is old news.
  static constexpr Duration kWindow = std::chrono::seconds(9);
  // Over less than this the counters are too coarse.
  static constexpr Duration kLeast = std::chrono::milliseconds(500);
  // What began no longer ago than this is measured from its beginning at once.
  static constexpr Duration kYoung = std::chrono::seconds(20);

  // `age`: how long ago the thing began, where that is known; its counter was 0 then.
  void note(std::string_view key, const Sample& sample, std::optional<Duration> age = {});
  // With the memory that was read last. Nothing where there is not yet enough to tell.
  std::optional<Rate> rate(std::string_view key) const;
  // What is not among these is over.
  void keep_only(const std::set<std::string, std::less<>>& keys);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    // Oldest first; the first is the newest that is a window old, or all there is.
    std::deque<Sample> samples = {};
    std::optional<std::int64_t> memory_bytes = {};
  };
  std::map<std::string, Entry, std::less<>> entries_ = {};
};

}  // namespace skiff::node
