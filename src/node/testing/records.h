// Containers as a node remembers them, for tests of plans.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/time.h"
#include "node/pod_plan.h"

namespace skiff::node::testing {

inline const Time kNow = *parse_time("2026-01-02T03:04:05Z");
// Of the metadata of a pod that is being deleted.
inline constexpr const char* kDeleting =
    R"(,"deletionTimestamp":"2026-01-02T03:04:35Z","deletionGracePeriodSeconds":30)";

inline ContainerRecord running(std::string name, int attempt = 0) {
  return {.name = std::move(name),
          .attempt = attempt,
          .pid = 7,
          .started_at = kNow - std::chrono::seconds(5)};
}

inline ContainerRecord exited(std::string name, int code = 0, int attempt = 0) {
  return {.name = std::move(name),
          .attempt = attempt,
          .state = ContainerState::kExited,
          .started_at = kNow - std::chrono::seconds(5),
          .finished_at = kNow,
          .exit_code = code};
}

}  // namespace skiff::node::testing
