// What upstream's JobSet controller counts, in its words, for whoever scrapes /metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/json.h"

namespace skiff::jobsets {

class Tally {
 public:
  // A JobSet has changed: `before` is null for one that appears, `after` for one that is gone. What
  // had ended when it was first seen is not counted, and what is gone is forgotten.
  void changed(const json::value* before, const json::value* after);

  std::string text() const;  // as Prometheus reads it

 private:
  struct Ends {
    std::uint64_t failed = 0;
    std::uint64_t completed = 0;
  };
  std::map<std::pair<std::string, std::string>, Ends> sets_ = {};  // by namespace and name
};

}  // namespace skiff::jobsets
