// The kind Event of events.k8s.io/v1: another view of the events that core/v1 keeps.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> events_kinds();

}  // namespace skiff::api
