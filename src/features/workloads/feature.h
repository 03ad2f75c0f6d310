// The built-in workload controllers as a feature: the one value that assembly needs.
#pragma once

#include <vector>

#include "control/controller.h"
#include "features/workloads/cron_job.h"

namespace skiff::workloads {

// Not for a cluster that has its own kube-controller-manager.
std::vector<control::Controller> make(Zones zones);

}  // namespace skiff::workloads
