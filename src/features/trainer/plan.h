// The TrainJob controller: a TrainJob and its runtime become a JobSet, whose state it tells.
#pragma once

#include "control/controller.h"

namespace skiff::trainer {

// Pure. `observed.owned` holds the job's JobSet, its ConfigMaps and what an MPI needs besides
// (mpi.h), `observed.seen` the runtime it names, of the cluster, then of its namespace, and pods:
// the first of each part, which tells its progress, and all of an MPI.
control::Plan plan_trainjob(const control::Observed& observed, Time now);
control::Controller trainjob_controller();

}  // namespace skiff::trainer
