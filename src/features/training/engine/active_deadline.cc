#include "features/training/engine/active_deadline.h"

namespace skiff::training {

Deadline check_deadline(std::optional<std::chrono::seconds> limit, std::optional<Time> started_at,
                        Time now) {
  if (!limit || !started_at) return {};
  const Time due = *started_at + *limit;
  if (now >= due) return {.exceeded = true};
  return {.look_again_after = due - now};
}

}  // namespace skiff::training
