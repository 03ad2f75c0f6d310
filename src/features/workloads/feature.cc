#include "features/workloads/feature.h"

#include <utility>

#include "features/workloads/daemon_set.h"
#include "features/workloads/deployment.h"
#include "features/workloads/disruption.h"
#include "features/workloads/endpoints.h"
#include "features/workloads/job.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/stateful_set.h"

namespace skiff::workloads {

// One line for each kind.
std::vector<control::Controller> make(Zones zones) {
  return {
      replica_set_controller(),               // ReplicaSet
      replication_controller(),               // ReplicationController
      deployment_controller(),                // Deployment
      stateful_set_controller(),              // StatefulSet
      daemon_set_controller(),                // DaemonSet
      job_controller(),                       // Job
      cron_job_controller(std::move(zones)),  // CronJob
      budget_controller(),                    // PodDisruptionBudget
      endpoints_controller(),                 // Endpoints and EndpointSlice
  };
}

}  // namespace skiff::workloads
