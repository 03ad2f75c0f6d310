#include "features/workloads/feature.h"

#include "features/workloads/deployment.h"
#include "features/workloads/endpoints.h"
#include "features/workloads/job.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/stateful_set.h"

namespace skiff::workloads {

// One line for each kind.
std::vector<control::Controller> make() {
  return {
      replica_set_controller(), deployment_controller(), stateful_set_controller(),
      job_controller(),         endpoints_controller(),
  };
}

}  // namespace skiff::workloads
