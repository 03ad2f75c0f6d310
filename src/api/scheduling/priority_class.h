// The kind PriorityClass: a name for a pod's priority.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> scheduling_kinds();

}  // namespace skiff::api
