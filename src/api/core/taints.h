// Taints of nodes and the tolerations of pods; which nodes a pod's selector and affinity admit.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::api {

// The tolerations of the pod (or of anything with a pod's spec) that tolerate the taint.
std::vector<const json::value*> tolerations_of(const json::value& pod, const json::value& taint);
// True where the node has no taint of that effect that the pod does not tolerate.
bool tolerates_all(const json::value& pod, const json::value& node, std::string_view effect);

// By spec.nodeSelector and required node affinity.
bool admits_node(const json::value& pod, const json::value& node);

}  // namespace skiff::api
