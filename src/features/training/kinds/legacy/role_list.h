// kubeflow.org/v1alpha1, the first version: roles are a list, and the status tells one phase.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// How the first version of a kind spells what all of them have.
struct ListVersion {
  const JobKind& (*kind)() = nullptr;
  std::string_view type_field = {};         // tfReplicaType
  std::string_view port_field = {};         // tfPort
  std::string_view status_type_field = {};  // tf_replica_type
  std::string_view termination = {};        // who decides, in terminationPolicy: chief
  // Whether members that come back from the annotation, which is anybody's to write, are v1's.
  bool (*fits)(const json::value& spec) = nullptr;
};

void from_role_list(const ListVersion& version, json::value& object);
void to_role_list(const ListVersion& version, json::value& object);
// The rules of v1 and those that only the first version has, with paths as it spells them.
std::vector<Cause> validate_role_list(const ListVersion& version, const json::value& object,
                                      const api::Admission& context);

}  // namespace skiff::training
