// Versions from before runPolicy: its members stand in the spec itself.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/json.h"

namespace skiff::training {

struct FlatVersion {
  // The members of runPolicy that this version has in its spec.
  std::initializer_list<std::string_view> policies = {};
  // The spec's other members; what v1 has beyond them is kept in an annotation.
  std::initializer_list<std::string_view> others = {};
  // Whether members that come back from the annotation, which is anybody's to write, are v1's.
  bool (*fits)(const json::value& spec) = nullptr;
  // What these versions clean up where nobody says: v1 cleans up nothing.
  std::string_view clean_pods = {};
  std::string_view statuses = "replicaStatuses";
};

void to_run_policy(const FlatVersion& version, json::value& object);
void from_run_policy(const FlatVersion& version, json::value& object);

}  // namespace skiff::training
