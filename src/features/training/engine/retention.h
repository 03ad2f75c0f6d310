// When a finished job is deleted (spec.runPolicy.ttlSecondsAfterFinished).
#pragma once

#include <chrono>
#include <optional>

#include "base/time.h"

namespace skiff::training {

struct Retention {
  bool delete_now = false;
  std::optional<Duration> look_again_after = {};

  bool operator==(const Retention&) const = default;
};

Retention check_retention(std::optional<std::chrono::seconds> ttl, std::optional<Time> completed_at,
                          Time now);

}  // namespace skiff::training
