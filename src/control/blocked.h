// Keys that wait to see their own writes, found by what they wait for: a turn costs those whose
// writes have arrived, not all that wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/barrier.h"
#include "control/cache.h"

namespace skiff::control {

class Blocked {
 public:
  using Id = std::pair<std::size_t, Key>;  // the number of a controller, and one of its keys

  // The barrier is closed. An `id` that is in here already waits for this one instead.
  void add(const Id& id, const Barrier& barrier, Duration until);
  // Takes out those whose barrier may have opened or whose time is up. Whose barrier proves to be
  // closed still is to be added again.
  std::vector<Id> take(const Barrier::Lookup& lookup, Duration now);
  // When the first one's time is up.
  std::optional<Duration> next() const;

 private:
  struct Wait {
    Duration until = {};
    Barrier::Mark mark = {};
  };
  void remove(const Id& id);

  std::map<Id, Wait> waits_ = {};
  // By resource and revision. Without a resource: only a look tells.
  std::map<std::string, std::set<std::pair<std::uint64_t, Id>>> marks_ = {};
  std::set<std::pair<Duration, Id>> times_ = {};
};

}  // namespace skiff::control
