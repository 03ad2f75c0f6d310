// The built-in resources that the simulated world itself reads and writes.
#pragma once

#include "api/kind.h"

namespace skiff::sim {

inline const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};
inline const api::Resource kNodes = {
    .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};

}  // namespace skiff::sim
