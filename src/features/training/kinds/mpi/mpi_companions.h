// What an MPIJob has beside its pods: the files at /etc/mpi, the launcher's account and its rights,
// and the service that gives all pods their names.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

std::vector<api::Resource> mpi_companion_kinds();
std::vector<json::value> mpi_companions(const Job& job, const Replicas& replicas);

std::string mpi_config_name(const Job& job);
// The service account of the launcher: the one its template names, else one of the job's own.
std::string mpi_account_name(const Job& job);

}  // namespace skiff::training
