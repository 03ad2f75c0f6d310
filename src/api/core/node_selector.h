// Node selectors: which nodes the affinity of a pod or of a volume admits.
#pragma once

#include "base/json.h"

namespace skiff::api {

// A v1.NodeSelector: one of its nodeSelectorTerms must hold. An empty term holds nowhere.
bool selects_node(const json::value& selector, const json::value& node);

// Whether the volume may be used on the node; without an affinity on any.
bool volume_reaches_node(const json::value& volume, const json::value& node);

}  // namespace skiff::api
