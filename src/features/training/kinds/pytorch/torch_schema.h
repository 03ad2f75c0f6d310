// The schema of PyTorchJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct RendezvousConf {
  std::string key = {};
  std::string value = {};
};

struct ElasticPolicySpec {
  std::optional<std::int32_t> min_replicas = {};
  std::optional<std::int32_t> max_replicas = {};
  std::string backend = {};
  std::optional<std::int32_t> port = {};
  std::string host = {};
  std::string id = {};
  std::vector<RendezvousConf> conf = {};
  bool standalone = false;
  std::optional<std::int32_t> processes = {};
  std::optional<std::int32_t> max_restarts = {};
  std::vector<json::object> metrics = {};
};

struct PyTorchJobSpec {
  RunPolicySpec run = {};
  ElasticPolicySpec elastic = {};
  std::map<std::string, ReplicaSpec> replicas = {};
  std::string processes = {};
};

template <class V>
void describe(V& v, RendezvousConf& x) {
  v.field("key", x.key).doc("Name of a setting.");
  v.field("value", x.value).doc("Its value.");
}

template <class V>
void describe(V& v, ElasticPolicySpec& x) {
  v.field("minReplicas", x.min_replicas).min(0).doc("The least number of workers.");
  v.field("maxReplicas", x.max_replicas).min(0).doc("The greatest number of workers.");
  v.field("rdzvBackend", x.backend)
      .one_of({"c10d", "etcd", "etcd-v2"})
      .doc("How workers find each other. c10d where absent.");
  v.field("rdzvPort", x.port).doc("Port of the meeting point. The worker's own where absent.");
  v.field("rdzvHost", x.host).doc("Host of the meeting point. Worker 0 where absent.");
  v.field("rdzvId", x.id).doc("Name of the meeting.");
  v.field("rdzvConf", x.conf).doc("Further settings of the meeting.");
  v.field("standalone", x.standalone).doc("Every worker trains by itself.");
  v.field("nProcPerNode", x.processes).doc("Deprecated: use spec.nprocPerNode.");
  v.field("maxRestarts", x.max_restarts).doc("How often torchrun starts the workers again.");
  v.field("metrics", x.metrics).doc("Accepted, and not acted upon.");
}

template <class V>
void describe(V& v, PyTorchJobSpec& x) {
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
  v.field("elasticPolicy", x.elastic).doc("Lets the number of workers change while they train.");
  v.field("pytorchReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Master, Worker.");
  v.field("nprocPerNode", x.processes)
      .doc("Processes in each pod: auto, cpu, gpu or a number. auto where absent.");
}

}  // namespace skiff::training
