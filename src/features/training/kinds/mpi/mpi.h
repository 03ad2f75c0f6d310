// MPIJob: a launcher that runs mpirun, and workers it starts programs in.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& mpi();

}  // namespace skiff::training
