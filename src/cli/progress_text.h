// Pure: how far a job is, in words: "step 120/1000 (12 %), loss 0.31, about 3m20s left".
#pragma once

#include <string>

#include "base/json.h"
#include "base/time.h"

namespace skiff::cli {

// Of status.progress; empty where nothing is known.
std::string progress_text(const json::value& job, Time now);
// The same for the bottom line of a terminal, after a bar; at most `width` characters.
std::string progress_bar(const json::value& job, Time now, std::size_t width);

// Whether it is time for another plain line: the first, one for every tenth, one a minute.
class ProgressLines {
 public:
  bool due(const json::value& job, Time now);

 private:
  std::string last_update_ = {};
  std::int64_t tenth_ = -1;
  std::optional<Time> told_ = {};
};

}  // namespace skiff::cli
