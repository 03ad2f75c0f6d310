// Structural schemas: every place has one type, said outside of allOf, anyOf, oneOf and not.
#pragma once

#include <string_view>

#include "api/checks.h"

namespace skiff::api {

// Complaints are sorted, as the real server's are. `path` is that of openAPIV3Schema.
void check_structural(const json::value& schema, std::string_view path, Causes& out);
// The type of one place of a schema; empty where it has none.
inline std::string_view schema_type(const json::value& schema) {
  return json::get_string(schema, {"type"});
}

}  // namespace skiff::api
