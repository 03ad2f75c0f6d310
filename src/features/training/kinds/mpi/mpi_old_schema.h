// Schemas of MPIJob's spec before v2beta1.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct FirstMPIJobSpec {
  std::optional<std::int32_t> slots = {};
  std::string clean_pods = {};
  std::map<std::string, ReplicaSpec> replicas = {};
  std::string main_container = {};
  RunPolicySpec run = {};
};

struct AlphaMPIJobSpec {
  FirstMPIJobSpec first = {};
  std::optional<std::int32_t> backoff_limit = {};
  std::optional<std::int64_t> active_deadline = {};
  std::optional<std::int32_t> ttl = {};
  std::string distribution = {};
};

template <class V>
void describe(V& v, FirstMPIJobSpec& x) {
  v.field("slotsPerWorker", x.slots)
      .min(0)
      .doc("How many processes each worker takes, as the host file says it. 1 where absent.");
  v.field("cleanPodPolicy", x.clean_pods)
      .one_of({"None", "Running", "All"})
      .doc("Which workers are deleted when the job has ended, unless runPolicy says it.");
  v.field("mpiReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Launcher, of which there is one, and Worker.");
  v.field("mainContainer", x.main_container)
      .doc("The workers' container that programs are started in. The first where absent.");
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
}

template <class V>
void describe(V& v, AlphaMPIJobSpec& x) {
  describe(v, x.first);
  v.field("backoffLimit", x.backoff_limit)
      .min(0)
      .doc("How many replicas may be replaced before the job fails. 6 where absent.");
  v.field("activeDeadlineSeconds", x.active_deadline).min(0).doc("How long the job may run.");
  v.field("ttlSecondsAfterFinished", x.ttl).min(0).doc("How long the job is kept after its end.");
  v.field("mpiDistribution", x.distribution)
      .one_of({"OpenMPI", "IntelMPI", "MPICH"})
      .doc("Which MPI the launcher has. OpenMPI where absent.");
}

}  // namespace skiff::training
