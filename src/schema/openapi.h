// Schemas as OpenAPI v3, out and in.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "schema/schema.h"

namespace skiff::schema {

// A schema as it stands in components.schemas; definitions are referred to as
// #/components/schemas/NAME.
json::object to_openapi(const Schema& schema);

// From openAPIV3Schema of a CRD, or from an OpenAPI document of a server. The error names the place
// below `path`.
Result<Schema> from_openapi(const json::value& v, std::string_view path = "openAPIV3Schema");

}  // namespace skiff::schema
