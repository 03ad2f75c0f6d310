// Replica bookkeeping: which pod and which service belong to which replica, and what is surplus.
//
// One pass over the pods and one over the services; ten thousand of each cost a few milliseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "control/controller.h"
#include "features/training/engine/job.h"

namespace skiff::training {

enum class Phase { kPending, kRunning, kSucceeded, kFailed };

// What the engine reads from a pod, once per plan.
struct ReplicaPod {
  const json::value* object = nullptr;
  Phase phase = Phase::kPending;
  bool deleting = false;
  std::int64_t attempt = 0;
};

struct Slot {
  ReplicaPod pod = {};                   // object is null where the replica has none
  const json::value* service = nullptr;  // null where the replica has none
};

struct RoleSlots {
  const Role* role = nullptr;
  std::vector<Slot> slots = {};  // one for each replica the role should have
};

struct Replicas {
  std::vector<RoleSlots> roles = {};  // in the order of Job::roles
  // Owned, but of no replica the job should have: past a role's count, of a role that is gone, or
  // the younger of two in one place.
  std::vector<const json::value*> surplus_pods = {};
  std::vector<const json::value*> surplus_services = {};
};

Replicas sort_replicas(const Job& job, const std::vector<Object>& pods,
                       const std::vector<Object>& services);

Phase read_phase(const json::value& pod);
// The exit code of the container that trains, or kNoExitCode where it left none.
std::int64_t exit_code(const Job& job, const json::value& pod);
inline constexpr std::int64_t kNoExitCode = 0xbeef;  // upstream's number: it counts as retryable
// Restarts in place, of all containers, since the pod was made.
std::int64_t container_restarts(const json::value& pod);

}  // namespace skiff::training
