// Structural schemas: every place has one type, said outside of allOf, anyOf, oneOf and not.
#pragma once

#include <string_view>

#include "api/checks.h"

namespace skiff::api {

// Complaints are sorted, as the real server's are. `path` is that of openAPIV3Schema.
void check_structural(const json::value& schema, std::string_view path, Causes& out);

}  // namespace skiff::api
