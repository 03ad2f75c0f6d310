// The schema of TrainingRuntime and ClusterTrainingRuntime.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::trainer {

struct InjectionTarget {
  std::string job = {};
  std::vector<std::string> containers = {};
};

struct EnvInjection {
  std::vector<InjectionTarget> targets = {};
};

struct TorchPolicy {
  EnvInjection injection = {};
  json::value processes = {};
};

struct MpiPolicy {
  std::int32_t processes = 1;
  std::string implementation = {};
  std::string ssh_path = {};
  bool launcher_is_node = false;
};

struct EmptyPolicy {};

struct MlPolicy {
  std::optional<std::int32_t> nodes = {};
  TorchPolicy torch = {};
  MpiPolicy mpi = {};
  json::object flux = {};
  EmptyPolicy jax = {};
  EmptyPolicy xgboost = {};
};

struct Coscheduling {
  std::int32_t timeout = 60;
};

struct PodGroupPolicy {
  Coscheduling coscheduling = {};
  json::object volcano = {};
};

struct JobSetTemplate {
  json::object metadata = {};
  json::value spec = {};
};

struct RuntimeSpec {
  MlPolicy ml = {};
  PodGroupPolicy group = {};
  JobSetTemplate jobset = {};
};

template <class V>
void describe(V& v, InjectionTarget& x) {
  v.field("jobName", x.job).required().length(1, 253).doc("A replicated job of the template.");
  v.field("containerNames", x.containers)
      .required()
      .items(1, 8)
      .list_set()
      .doc("Its containers that get the variables, too. Not node, which always does.");
}

template <class V>
void describe(V& v, EnvInjection& x) {
  v.field("targets", x.targets).items(0, 16).list_map({"jobName"}).doc("Who gets them, too.");
}

template <class V>
void describe(V& v, TorchPolicy& x) {
  v.field("envInjection", x.injection).doc("More containers that get torchrun's variables.");
  v.field("numProcPerNode", x.processes)
      .int_or_string()
      .doc("Processes of each node: a number, auto, cpu or gpu. Before 2.2.");
}

template <class V>
void describe(V& v, MpiPolicy& x) {
  v.field("numProcPerNode", x.processes).fallback(1).doc("Slots of each node.");
  v.field("mpiImplementation", x.implementation)
      .one_of({"OpenMPI", ""})
      .fallback("OpenMPI")
      .doc("Which MPI.");
  v.field("sshAuthMountPath", x.ssh_path)
      .fallback("/root/.ssh")
      .doc("Kept, and not acted upon: no SSH.");
  v.field("runLauncherAsNode", x.launcher_is_node).fallback(false).doc("The launcher trains, too.");
}

template <class V>
void describe(V&, EmptyPolicy&) {}

template <class V>
void describe(V& v, MlPolicy& x) {
  v.field("numNodes", x.nodes).min(0).doc("How many nodes train. 1 where absent.");
  v.field("torch", x.torch).doc("PyTorch: torchrun's variables PET_*.");
  v.field("mpi", x.mpi).doc("MPI: a host file and a launcher.");
  v.field("flux", x.flux).doc("Flux.");
  v.field("jax", x.jax).doc("JAX: variables JAX_*.");
  v.field("xgboost", x.xgboost).doc("XGBoost: variables DMLC_*.");
}

template <class V>
void describe(V& v, Coscheduling& x) {
  v.field("scheduleTimeoutSeconds", x.timeout).fallback(60).doc("Kept, and not acted upon.");
}

template <class V>
void describe(V& v, PodGroupPolicy& x) {
  v.field("coscheduling", x.coscheduling).doc("Pods are placed together, by the coscheduler.");
  v.field("volcano", x.volcano).doc("Pods are placed together, by Volcano.");
}

template <class V>
void describe(V& v, JobSetTemplate& x) {
  v.field("metadata", x.metadata).doc("Labels and annotations of the JobSet.");
  v.field("spec", x.spec)
      .definition("io.x-k8s.jobset.v1alpha2.JobSetSpec")
      .doc("The JobSet of a job.");
}

template <class V>
void describe(V& v, RuntimeSpec& x) {
  v.field("mlPolicy", x.ml).doc("The framework, and how many nodes.");
  v.field("podGroupPolicy", x.group)
      .doc("All parts that run at the same time are placed together.");
  v.field("template", x.jobset).doc("The JobSet that a TrainJob becomes.");
}

}  // namespace skiff::trainer
