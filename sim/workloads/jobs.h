// Kubernetes Jobs as a workload: work queues, indexes, deadlines, suspension.
#pragma once

#include <memory>

#include "sim/workload.h"

namespace skiff::sim {

std::unique_ptr<Workload> make_jobs();

}  // namespace skiff::sim
