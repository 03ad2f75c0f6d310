#include "features/training/kinds/mpi/mpi_env.h"

#include <utility>

#include "api/mpi.h"
#include "features/training/kinds/mpi/mpi_settings.h"

namespace skiff::training {
namespace {

using Env = std::vector<EnvVar>;

void add_open_mpi(const MpiSettings& settings, Env& env) {
  for (auto& [name, value] : mpi::open_mpi_variables()) {
    env.push_back({std::move(name), std::move(value)});
  }
  if (settings.as_v1) return;
  env.push_back({"OMPI_MCA_orte_set_default_slots", std::to_string(settings.slots)});
}

// `rsh`: told that it is ssh, the launcher would add ssh's own options.
void add_intel(const MpiSettings& settings, Env& env) {
  // v1 leaves these to whoever has set them; later ones have no other way than ours.
  const bool yields = settings.as_v1;
  env.push_back({.name = "I_MPI_HYDRA_BOOTSTRAP", .value = "rsh", .yields = yields});
  env.push_back({.name = "I_MPI_HYDRA_BOOTSTRAP_EXEC",
                 .value = std::string(mpi::kRemoteShell),
                 .yields = yields});
  if (settings.as_v1) return;
  env.push_back({"I_MPI_HYDRA_HOST_FILE", std::string(mpi::kHostFile)});
  env.push_back({"I_MPI_PERHOST", std::to_string(settings.slots)});
}

void add_mpich(Env& env) {
  env.push_back({"HYDRA_HOST_FILE", std::string(mpi::kHostFile)});
  env.push_back({"HYDRA_LAUNCHER", "rsh"});
  env.push_back({"HYDRA_LAUNCHER_EXEC", std::string(mpi::kRemoteShell)});
}

Env launcher_environment(const MpiSettings& settings) {
  Env env{{"K_MPI_JOB_ROLE", "launcher"}};
  if (settings.as_v1) {
    // It does not say which implementation it is, so that it is told about both it knew.
    add_open_mpi(settings, env);
    add_intel(settings, env);
  } else {
    switch (settings.implementation) {
      case MpiImplementation::kOpenMpi:
        add_open_mpi(settings, env);
        break;
      case MpiImplementation::kIntel:
        add_intel(settings, env);
        break;
      case MpiImplementation::kMpich:
        add_mpich(env);
        break;
    }
  }
  // A launcher that only waits takes no accelerator from a worker.
  if (!settings.launcher_works) {
    env.push_back({"NVIDIA_VISIBLE_DEVICES", ""});
    env.push_back({"NVIDIA_DRIVER_CAPABILITIES", ""});
  }
  return env;
}

}  // namespace

Environment mpi_environment(const Job& job) {
  return [launcher = launcher_environment(read_mpi_settings(job))](const Role& role, std::int64_t) {
    return role.name == kLauncher ? launcher : Env{{"K_MPI_JOB_ROLE", "worker"}};
  };
}

}  // namespace skiff::training
