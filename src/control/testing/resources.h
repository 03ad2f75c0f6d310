// The built-in resources that tests of controllers read and write.
#pragma once

#include "api/kind.h"

namespace skiff::control::testing {

inline const api::Resource kPods = {.version = "v1", .plural = "pods", .kind = "Pod"};
inline const api::Resource kNodes = {
    .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
inline const api::Resource kServices = {.version = "v1", .plural = "services", .kind = "Service"};
inline const api::Resource kEvents = {.version = "v1", .plural = "events", .kind = "Event"};

}  // namespace skiff::control::testing
