// Training jobs in the simulator: random TFJobs and PyTorchJobs with every policy, people who
// suspend, scale and delete them, and pods that succeed, fail, hang and run out of memory.
#pragma once

#include <memory>

#include "sim/workload.h"

namespace skiff::sim {

std::unique_ptr<Workload> make_training();

}  // namespace skiff::sim
