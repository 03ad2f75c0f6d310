// Why something waits, runs or failed, in sentences a person can act on. Pure: objects in, text
// out.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::cli {

struct Situation {
  Object object = {};               // the pod or job asked about
  std::vector<Object> pods = {};    // of a job
  std::vector<Object> events = {};  // on the object and its pods, oldest first
};

// First the short answer, then what it rests on, then what to do; never empty.
std::vector<std::string> explain(const Situation& situation, Time now);

}  // namespace skiff::cli
