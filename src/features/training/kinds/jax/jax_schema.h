// The schema of JAXJob's spec.
#pragma once

#include "features/training/engine/job_schema.h"

namespace skiff::training {

struct JAXJobSpec {
  RunPolicySpec run = {};
  std::map<std::string, ReplicaSpec> replicas = {};
};

template <class V>
void describe(V& v, JAXJobSpec& x) {
  v.field("runPolicy", x.run).doc("Limits, clean-up and suspension of the whole job.");
  v.field("jaxReplicaSpecs", x.replicas).required().doc("The replicas by role: Worker.");
}

}  // namespace skiff::training
