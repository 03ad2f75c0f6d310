// The kind RuntimeClass: which handler runs a pod's containers.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> node_kinds();

}  // namespace skiff::api
