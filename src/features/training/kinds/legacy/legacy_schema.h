// Schemas of specs of the versions before v1.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

// v1alpha2, v1beta1 and v1beta2 of TFJob and PyTorchJob: v1 with its run policy in the spec itself.
// The later ones have more of it; all of them accept all of it.
struct FlatPolicySpec {
  std::string clean_pods = {};
  std::optional<std::int32_t> ttl = {};
  std::optional<std::int64_t> active_deadline = {};
  std::optional<std::int32_t> backoff_limit = {};
};

struct FlatTFJobSpec {
  FlatPolicySpec run = {};
  std::map<std::string, ReplicaSpec> replicas = {};
};

struct FlatPyTorchJobSpec {
  FlatPolicySpec run = {};
  std::map<std::string, ReplicaSpec> replicas = {};
};

template <class V>
void describe_flat(V& v, FlatPolicySpec& x, std::string_view clean_pods_doc) {
  v.field("cleanPodPolicy", x.clean_pods).one_of({"None", "Running", "All"}).doc(clean_pods_doc);
  v.field("ttlSecondsAfterFinished", x.ttl).min(0).doc("How long the job is kept after its end.");
  v.field("activeDeadlineSeconds", x.active_deadline).min(0).doc("How long the job may run.");
  v.field("backoffLimit", x.backoff_limit)
      .min(0)
      .doc("How many replicas may be replaced before the job fails.");
}

template <class V>
void describe(V& v, FlatPyTorchJobSpec& x) {
  describe_flat(v, x.run, "Which pods are deleted when the job has ended. None where absent.");
  v.field("pytorchReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Master, Worker.");
}

template <class V>
void describe(V& v, FlatTFJobSpec& x) {
  describe_flat(v, x.run, "Which pods are deleted when the job has ended. Running where absent.");
  v.field("tfReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Chief or Master, PS, Worker, Evaluator.");
}

// v1alpha1: roles in a list.
struct TFReplicaEntry {
  std::optional<std::int32_t> replicas = {};
  json::value pod_template = {};
  std::optional<std::int32_t> port = {};
  std::string type = {};
};

struct TorchReplicaEntry {
  std::optional<std::int32_t> replicas = {};
  json::value pod_template = {};
  std::optional<std::int32_t> port = {};
  std::string type = {};
};

struct TFJobList {
  std::string runtime = {};
  std::vector<TFReplicaEntry> replicas = {};
  std::string image = {};
  json::object termination = {};
  std::string scheduler = {};
};

struct TorchJobList {
  std::string backend = {};
  json::value port = {};  // text in the manifests of its time, and never read by anybody
  std::string runtime = {};
  std::vector<TorchReplicaEntry> replicas = {};
  std::string image = {};
  json::object termination = {};
  std::string scheduler = {};
};

// What both kinds spell alike.
template <class V, class Entry>
void describe_entry(V& v, Entry& x) {
  v.field("replicas", x.replicas).min(0).doc("How many replicas. 1 where absent.");
  v.field("template", x.pod_template)
      .definition("io.k8s.api.core.v1.PodTemplateSpec")
      .doc("The pod of each replica. Its restartPolicy is the role's.");
}

template <class V, class List>
void describe_list(V& v, List& x) {
  v.field("RuntimeId", x.runtime).doc("Kept, and not acted upon: names need no such part.");
  v.field("replicaSpecs", x.replicas).required().doc("The roles of the job.");
  v.field("terminationPolicy", x.termination)
      .doc("Kept. The master decides where there is one, else worker 0 or all workers.");
  v.field("schedulerName", x.scheduler).doc("The scheduler of every pod.");
}

template <class V>
void describe(V& v, TFReplicaEntry& x) {
  describe_entry(v, x);
  v.field("tfPort", x.port).doc("The port that TensorFlow listens on. 2222 where absent.");
  v.field("tfReplicaType", x.type).doc("MASTER (where absent), WORKER or PS.");
}

template <class V>
void describe(V& v, TorchReplicaEntry& x) {
  describe_entry(v, x);
  v.field("masterPort", x.port).doc("The port that the master listens on. 23456 where absent.");
  v.field("replicaType", x.type).doc("MASTER (where absent) or WORKER.");
}

template <class V>
void describe(V& v, TFJobList& x) {
  describe_list(v, x);
  v.field("tfImage", x.image).doc("Kept, and not acted upon: containers name their images.");
}

template <class V>
void describe(V& v, TorchJobList& x) {
  describe_list(v, x);
  v.field("backend", x.backend).doc("Kept, and not acted upon: the program chooses its own.");
  v.field("masterPort", x.port).doc("Kept, and not acted upon: see replicaSpecs.masterPort.");
  v.field("pytorchImage", x.image).doc("Kept, and not acted upon: containers name their images.");
}

}  // namespace skiff::training
