// The schema of XGBoostJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct XGBoostJobSpec {
  RunPolicySpec run = {};
  std::map<std::string, ReplicaSpec> replicas = {};
};

template <class V>
void describe(V& v, XGBoostJobSpec& x) {
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
  v.field("xgbReplicaSpecs", x.replicas).required().doc("The replicas by role: Master, Worker.");
}

}  // namespace skiff::training
