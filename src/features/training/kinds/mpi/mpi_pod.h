// The pods of an MPIJob: what its launcher and workers get beyond template and environment.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

void finish_mpi_pod(const Job& job, const Role& role, json::object& pod);

}  // namespace skiff::training
