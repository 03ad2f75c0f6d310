// What happens to a replica whose pod has failed (spec.<x>ReplicaSpecs[*].restartPolicy).
//
// This is about whole pods. Restarts of a container inside its pod are the node's, by the pod's own
// restartPolicy, which pod_restart_policy() derives.
#pragma once

#include <cstdint>
#include <string_view>

#include "features/training/engine/job.h"

namespace skiff::training {

enum class AfterFailure {
  kReplace,  // delete the pod, make the next
  kFinal,    // the replica has failed for good
};

AfterFailure after_failure(RestartPolicy policy, std::int64_t exit_code);

// Whether a failed pod was taken away (preempted, drained, its node lost): that says nothing about
// the program, so it is replaced whatever the policy. A pod that a node evicts because it used too
// much is not: the next one would do the same.
bool taken_away(const json::value& failed_pod);

// ExitCode is not a policy that a node knows: the pod must end so that its code can be judged. And
// where one failure starts the whole gang again, no container may be started again by its node.
std::string_view pod_restart_policy(RestartPolicy policy, bool restart_gang);

}  // namespace skiff::training
