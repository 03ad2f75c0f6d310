// Ending every pod of this machine with grace, when Skiff itself is told to go and take them along.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/time.h"
#include "node/runtime.h"

namespace skiff::node {

struct ShutdownOptions {
  Duration grace = std::chrono::seconds(30);                 // of pods that are not in `graces`
  std::map<std::string, Duration, std::less<>> graces = {};  // by pod uid
  std::function<Duration()> elapsed = {};                    // a clock that never steps back
  std::function<void(Duration)> sleep = {};
};

// SIGTERM to every container, then, when its pod's grace is over, the end. Exit records and logs
// stay: the next start finds how each container ended and restarts what its policy says.
// Call only when no agent uses the runtime any more.
void stop_all_pods(Runtime& runtime, const ShutdownOptions& options);

}  // namespace skiff::node
