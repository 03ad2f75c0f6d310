// What the schema of a CustomResourceDefinition must be: structural, and without what the server
// does not support. Works on the schema as it is written, since complaints name its places.
#pragma once

#include <string_view>

#include "api/checks.h"

namespace skiff::api {

// `path` is that of openAPIV3Schema. With `has_status` the root may hold only what can be split
// into a schema of the status and one of the rest.
void check_crd_schema(const json::value& schema, std::string_view path, bool has_status,
                      Causes& out);

// Whether a keyword stands anywhere in the schema.
bool schema_mentions(const json::value& schema, std::string_view keyword);

}  // namespace skiff::api
