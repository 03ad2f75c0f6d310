#include "features/training/engine/retention.h"

namespace skiff::training {

Retention check_retention(std::optional<std::chrono::seconds> ttl, std::optional<Time> completed_at,
                          Time now) {
  // Without a TTL a job stays until a person deletes it: its pods may be all that holds its logs.
  if (!ttl) return {};
  // A missing completion time is written by the plan that notices it; until then the job stays.
  if (!completed_at) return {};
  const Time due = *completed_at + *ttl;
  if (now >= due) return {.delete_now = true};
  return {.look_again_after = due - now};
}

}  // namespace skiff::training
