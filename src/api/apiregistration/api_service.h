// The kind APIService: which server answers for a group and version. Here that is always this one.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> apiregistration_kinds();

}  // namespace skiff::api
