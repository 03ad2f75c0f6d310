// The schema of TrainJob, as trainer.kubeflow.org/v1alpha1 of Kubeflow Trainer 2.3 has it, with the
// fields that 2.0 and 2.1 had in their place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/describe.h"

namespace skiff::trainer {

struct RuntimeRef {
  std::string name = {};
  std::string group = {};
  std::string kind = {};
};

struct EnvVar {
  std::string name = {};
  std::string value = {};
  json::value from = {};
};

struct Source {
  std::string uri = {};
  std::vector<EnvVar> env = {};
  json::value secret = {};
};

struct Initializer {
  Source dataset = {};
  Source model = {};
};

struct TrainerSpec {
  std::string image = {};
  std::vector<std::string> command = {};
  std::vector<std::string> args = {};
  std::vector<EnvVar> env = {};
  std::optional<std::int32_t> nodes = {};
  json::value resources = {};
  json::value processes = {};
};

struct RuntimePatch {
  std::string manager = {};
  std::optional<Time> time = {};
  json::object spec = {};
};

struct TrainJobSpec {
  RuntimeRef runtime = {};
  Initializer initializer = {};
  TrainerSpec trainer = {};
  std::vector<RuntimePatch> patches = {};
  bool suspend = false;
  std::int64_t deadline = 0;
  std::string managed_by = {};
  json::object labels = {};
  json::object annotations = {};
  std::vector<json::object> pod_overrides = {};
  std::vector<json::object> template_overrides = {};
};

template <class V>
void describe(V& v, RuntimeRef& x) {
  v.field("name", x.name).required().length(1, 253).doc("The name of the runtime.");
  v.field("apiGroup", x.group).length(0, 253).fallback("trainer.kubeflow.org").doc("Its group.");
  v.field("kind", x.kind)
      .length(0, 253)
      .fallback("ClusterTrainingRuntime")
      .doc("TrainingRuntime of the job's namespace, or ClusterTrainingRuntime.");
}

template <class V>
void describe(V& v, EnvVar& x) {
  v.field("name", x.name).required().doc("The variable.");
  v.field("value", x.value).doc("Its value.");
  v.field("valueFrom", x.from)
      .definition("io.k8s.api.core.v1.EnvVarSource")
      .doc("Where its value comes from.");
}

template <class V>
void describe(V& v, Source& x) {
  v.field("storageUri", x.uri).length(0, 2048).doc("Where it comes from: hf://, s3://, cache://.");
  v.field("env", x.env).items(0, 128).list_map({"name"}).doc("Variables of the initializer.");
  v.field("secretRef", x.secret)
      .definition("io.k8s.api.core.v1.LocalObjectReference")
      .doc("A secret that becomes variables of the initializer.");
}

template <class V>
void describe(V& v, Initializer& x) {
  v.field("dataset", x.dataset).doc("What fetches the data, before training.");
  v.field("model", x.model).doc("What fetches the model, before training.");
}

template <class V>
void describe(V& v, TrainerSpec& x) {
  v.field("image", x.image).length(0, 500).doc("The image of the nodes, instead of the runtime's.");
  v.field("command", x.command).items(0, 128).doc("The command of the nodes.");
  v.field("args", x.args).items(0, 128).doc("The arguments of the nodes.");
  v.field("env", x.env).items(0, 128).list_map({"name"}).doc("Variables of the nodes.");
  v.field("numNodes", x.nodes)
      .min(0)
      .doc("How many nodes train; the runtime's number where absent.");
  v.field("resourcesPerNode", x.resources)
      .definition("io.k8s.api.core.v1.ResourceRequirements")
      .doc("What each node asks for.");
  v.field("numProcPerNode", x.processes)
      .int_or_string()
      .doc("Processes of each node. Where absent: one for each GPU, else one for each CPU.");
}

template <class V>
void describe(V& v, RuntimePatch& x) {
  v.field("manager", x.manager)
      .required()
      .length(1, 253)
      .doc("Who wants it, as a path with a domain: kueue.x-k8s.io/manager.");
  v.field("time", x.time).doc("When it was last changed; the server sets it.");
  v.field("trainingRuntimeSpec", x.spec)
      .doc("template.spec.replicatedJobs[] by name: labels, annotations and pods of the runtime.");
}

template <class V>
void describe(V& v, TrainJobSpec& x) {
  v.field("runtimeRef", x.runtime).required().doc("The runtime that the job is made from.");
  v.field("initializer", x.initializer).doc("What is fetched before training.");
  v.field("trainer", x.trainer).doc("What trains, where it differs from the runtime.");
  v.field("runtimePatches", x.patches)
      .items(0, 16)
      .list_map({"manager"})
      .doc("Changes of the runtime for this job alone.");
  v.field("suspend", x.suspend).fallback(false).doc("While true the job has no pods.");
  v.field("activeDeadlineSeconds", x.deadline)
      .min(1)
      .doc("How long the job may run, from its creation or from when it was last resumed.");
  v.field("managedBy", x.managed_by)
      .length(0, 253)
      .fallback("trainer.kubeflow.org/trainjob-controller")
      .doc("Who runs the job; kueue.x-k8s.io/multikueue leaves it alone.");
  v.field("labels", x.labels).doc("Labels of the JobSet. Before 2.2; see runtimePatches.");
  v.field("annotations", x.annotations).doc("Annotations of the JobSet. Before 2.2.");
  v.field("podSpecOverrides", x.pod_overrides).doc("As of 2.0: targetJobs and fields of a pod.");
  v.field("podTemplateOverrides", x.template_overrides)
      .doc("As of 2.1: targetJobs, metadata and spec of a pod.");
}

}  // namespace skiff::trainer
