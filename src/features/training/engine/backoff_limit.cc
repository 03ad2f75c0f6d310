#include "features/training/engine/backoff_limit.h"

#include <algorithm>

namespace skiff::training {

bool backoff_exceeded(std::optional<std::int64_t> limit, const RestartCount& count) {
  if (!limit) return false;
  // The replacement that would be one too many is never made, so the count stays within the limit.
  if (count.to_replace > 0 && count.replaced + count.to_replace > *limit) return true;
  // Upstream's rule for containers that restart in place: the limit-th restart already fails the
  // job, and a limit of none allows none.
  return count.in_place >= std::max<std::int64_t>(*limit, 1);
}

}  // namespace skiff::training
