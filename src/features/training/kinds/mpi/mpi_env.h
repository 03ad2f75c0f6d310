// The environment of an MPIJob: where mpirun finds its hosts and the remote shell.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

Environment mpi_environment(const Job& job);

}  // namespace skiff::training
