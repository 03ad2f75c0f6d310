// The schema of MPIJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct MPIJobSpec {
  std::optional<std::int32_t> slots = {};
  bool launcher_works = false;
  RunPolicySpec run = {};
  std::map<std::string, ReplicaSpec> replicas = {};
  std::string ssh_path = {};
  std::string creation = {};
  std::string implementation = {};
};

template <class V>
void describe(V& v, MPIJobSpec& x) {
  v.field("slotsPerWorker", x.slots)
      .min(0)
      .doc("How many processes each worker takes, as the host file says it. 1 where absent.");
  v.field("runLauncherAsWorker", x.launcher_works)
      .doc("Whether the launcher stands in the host file, before the workers.");
  v.field("runPolicy", x.run)
      .doc(
          "Limits, clean-up and suspension of the whole job. Where it does not say, workers that "
          "run at the end are stopped, and 6 restarts are allowed.");
  v.field("mpiReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Launcher, of which there is one, and Worker.");
  v.field("sshAuthMountPath", x.ssh_path)
      .doc("Kept, and not acted upon: workers are reached without SSH.");
  v.field("launcherCreationPolicy", x.creation)
      .one_of({"AtStartup", "WaitForWorkersReady"})
      .doc("When the launcher's pod is made. AtStartup where absent.");
  v.field("mpiImplementation", x.implementation)
      .one_of({"OpenMPI", "Intel", "MPICH"})
      .doc("What the launcher's variables and its host file are for. OpenMPI where absent.");
}

}  // namespace skiff::training
