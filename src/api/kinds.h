// Every built-in kind, listed once. Kinds of features are listed by their features.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

const std::vector<Kind>& builtin_kinds();

}  // namespace skiff::api
