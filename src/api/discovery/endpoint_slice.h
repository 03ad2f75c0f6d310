// The kind EndpointSlice: where the pods of a service are.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> discovery_kinds();

}  // namespace skiff::api
