// OpenAPI v2: one document of all kinds, which kubectl up to 1.24 validates and explains by. Made
// from the v3 documents, so that both tell the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::apiserver {

inline constexpr std::string_view kOpenApiV2Type =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

json::object openapi_v2(const std::vector<json::object>& v3_documents);
// The document in gnostic's protobuf, the only form that kubectl reads.
std::string gnostic(const json::object& v2_document);

}  // namespace skiff::apiserver
