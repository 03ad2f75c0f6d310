// What an MPIJob's spec says beyond roles and run policy, defaults filled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "features/training/engine/job.h"

namespace skiff::training {

inline constexpr std::string_view kLauncher = "Launcher";
inline constexpr std::string_view kWorker = "Worker";

enum class MpiImplementation { kOpenMpi, kIntel, kMpich };

struct MpiSettings {
  bool as_v1 = false;  // written as kubeflow.org/v1, and so in the words of its controller
  std::int64_t slots = 1;
  bool launcher_works = false;  // it stands in the host file
  bool waits_for_workers = false;
  MpiImplementation implementation = MpiImplementation::kOpenMpi;
  std::string main_container = {};  // of the workers, where programs start; empty: the first
};

MpiSettings read_mpi_settings(const Job& job);
// The version that an MPIJob was written in. Jobs of v1 keep its defaults.
std::string written_version(const json::value& root);
bool written_as_v1(const json::value& root);

// The name a replica has in the host file: of its pod alone in v1, else with the job's service.
std::string mpi_host(const Job& job, const MpiSettings& settings, std::string_view pod);

}  // namespace skiff::training
