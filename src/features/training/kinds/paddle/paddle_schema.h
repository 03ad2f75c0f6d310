// The schema of PaddleJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct PaddleElasticPolicySpec {
  std::optional<std::int32_t> min_replicas = {};
  std::optional<std::int32_t> max_replicas = {};
  std::optional<std::int32_t> max_restarts = {};
  std::vector<json::object> metrics = {};
};

struct PaddleJobSpec {
  RunPolicySpec run = {};
  PaddleElasticPolicySpec elastic = {};
  std::map<std::string, ReplicaSpec> replicas = {};
};

template <class V>
void describe(V& v, PaddleElasticPolicySpec& x) {
  v.field("minReplicas", x.min_replicas).min(0).doc("The least number of workers.");
  v.field("maxReplicas", x.max_replicas).min(0).doc("The greatest number of workers.");
  v.field("maxRestarts", x.max_restarts).doc("Accepted, and not acted upon.");
  v.field("metrics", x.metrics).doc("Accepted, and not acted upon.");
}

template <class V>
void describe(V& v, PaddleJobSpec& x) {
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
  v.field("elasticPolicy", x.elastic).doc("Lets the number of workers change while they train.");
  v.field("paddleReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Master (a parameter server), Worker.");
}

}  // namespace skiff::training
