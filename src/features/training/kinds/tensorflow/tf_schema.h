// The schema of TFJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct TFJobSpec {
  RunPolicySpec run = {};
  std::string success_policy = {};
  std::map<std::string, ReplicaSpec> replicas = {};
  bool dynamic_worker = false;
};

template <class V>
void describe(V& v, TFJobSpec& x) {
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
  v.field("successPolicy", x.success_policy)
      .one_of({"", "AllWorkers"})
      .doc("Without a chief: the job succeeds with worker 0, or only with all workers.");
  v.field("tfReplicaSpecs", x.replicas)
      .required()
      .doc("The replicas by role: Chief or Master, PS, Worker, Evaluator.");
  v.field("enableDynamicWorker", x.dynamic_worker)
      .doc("Workers may come, go and fail while the job runs.");
}

}  // namespace skiff::training
