// status.replicaStatuses: how many replicas of each role run, succeeded and failed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "features/training/engine/job.h"

namespace skiff::training {

struct RoleCount {
  const Role* role = nullptr;
  std::int64_t active = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
};

void write_replica_statuses(const Job& job, const std::vector<RoleCount>& counts,
                            json::object& status);
// The job succeeded: what still runs did its part and counts as succeeded.
void settle_succeeded(json::object& status);
// Sets every role's active count: the pods of a job that failed or was suspended end one by one.
void write_active(const std::vector<RoleCount>& counts, json::object& status);

}  // namespace skiff::training
