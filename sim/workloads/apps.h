// What runs on and on, as a workload: Deployments, StatefulSets, DaemonSets, ReplicaSets and
// ReplicationControllers with services and budgets, CronJobs, claims, and nodes that come and go.
#pragma once

#include <memory>

#include "sim/workload.h"

namespace skiff::sim {

std::unique_ptr<Workload> make_apps();

}  // namespace skiff::sim
