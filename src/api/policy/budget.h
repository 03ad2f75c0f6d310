// The kind PodDisruptionBudget: how many pods may be evicted at once.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> policy_kinds();

}  // namespace skiff::api
