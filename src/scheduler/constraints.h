// What keeps a pod off a node besides lack of room: selectors, affinity, taints, the node's state.
#pragma once

#include <optional>
#include <string>

#include "scheduler/snapshot.h"

namespace skiff::scheduler {

// In kube-scheduler's words, to follow a count of nodes: "node(s) were unschedulable".
std::optional<std::string> obstacle(const Pod& pod, const Node& node);

}  // namespace skiff::scheduler
