// TrainJobs as a workload: jobs that become JobSets, whose Jobs make pods, through all controllers.
#pragma once

#include <memory>

#include "sim/workload.h"

namespace skiff::sim {

std::unique_ptr<Workload> make_trainjobs();

}  // namespace skiff::sim
