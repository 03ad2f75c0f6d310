// Whether a job has used up its restarts (spec.runPolicy.backoffLimit).
#pragma once

#include <cstdint>
#include <optional>

namespace skiff::training {

struct RestartCount {
  std::int64_t replaced = 0;    // pods replaced since the job was made
  std::int64_t to_replace = 0;  // pods that would be replaced now
  std::int64_t in_place = 0;    // restarts of containers inside pods that run now
};

bool backoff_exceeded(std::optional<std::int64_t> limit, const RestartCount& count);

}  // namespace skiff::training
