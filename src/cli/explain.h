// What the server's OpenAPI document says about a kind or one of its fields, as kubectl explain
// prints it. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

// The path of the document of a group version in the answer to /openapi/v3; empty where it has
// none.
std::string document_target(const json::value& index, const api::Resource& resource);

// `fields` leads from the kind to what is explained; empty: the kind itself.
Result<std::string> explain_text(const json::value& document, const api::Resource& resource,
                                 const std::vector<std::string>& fields, bool recursive);

}  // namespace skiff::cli
