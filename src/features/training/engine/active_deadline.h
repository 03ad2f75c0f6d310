// Whether a job has run longer than it may (spec.runPolicy.activeDeadlineSeconds).
#pragma once

#include <chrono>
#include <optional>

#include "base/time.h"

namespace skiff::training {

struct Deadline {
  bool exceeded = false;
  std::optional<Duration> look_again_after = {};  // when it will be, if nothing happens before

  bool operator==(const Deadline&) const = default;
};

Deadline check_deadline(std::optional<std::chrono::seconds> limit, std::optional<Time> started_at,
                        Time now);

}  // namespace skiff::training
