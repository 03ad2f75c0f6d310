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

// v1alpha1.
struct UnitsMPIJobSpec {
  std::optional<std::int32_t> gpus = {};
  std::optional<std::int32_t> gpus_per_node = {};
  std::optional<std::int32_t> units = {};
  std::optional<std::int32_t> units_per_node = {};
  std::string resource = {};
  std::optional<std::int32_t> slots = {};
  std::optional<bool> on_master = {};
  std::optional<std::int32_t> backoff_limit = {};
  std::optional<std::int64_t> active_deadline = {};
  std::optional<std::int32_t> replicas = {};
  json::value pod_template = {};
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

template <class V>
void describe(V& v, UnitsMPIJobSpec& x) {
  v.field("gpus", x.gpus)
      .min(1)
      .doc(
          "How many GPUs the job has. Exactly one of gpus, processingUnits and replicas is given.");
  v.field("gpusPerNode", x.gpus_per_node)
      .min(1)
      .doc("How many GPUs a worker has at most; of more, gpus is a multiple. 8 where absent.");
  v.field("processingUnits", x.units)
      .min(1)
      .doc("How many processing units the job has, of the kind that processingResourceType says.");
  v.field("processingUnitsPerNode", x.units_per_node)
      .min(1)
      .doc(
          "How many processing units a worker has at most; of more, processingUnits is a "
          "multiple. 1 where absent.");
  v.field("processingResourceType", x.resource)
      .one_of({"nvidia.com/gpu", "cpu"})
      .doc("What a processing unit is. nvidia.com/gpu where absent.");
  v.field("slotsPerWorker", x.slots)
      .min(1)
      .doc(
          "How many processes each worker takes, as the host file says it. Its processing units "
          "where absent.");
  v.field("launcherOnMaster", x.on_master)
      .doc("Whether the launcher goes to a master or control-plane node where there is one.");
  v.field("backoffLimit", x.backoff_limit)
      .min(0)
      .doc("How many replicas may be replaced before the job fails. 6 where absent.");
  v.field("activeDeadlineSeconds", x.active_deadline).min(0).doc("How long the job may run.");
  v.field("replicas", x.replicas)
      .min(1)
      .doc("How many workers there are, each with what the template asks for.");
  v.field("template", x.pod_template)
      .required()
      .definition("io.k8s.api.core.v1.PodTemplateSpec")
      .doc(
          "The pod of the launcher, without the resources of its first container, and of each "
          "worker, where the first container waits for what mpirun starts in it.");
}

}  // namespace skiff::training
