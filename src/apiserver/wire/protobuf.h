// Request bodies in Kubernetes' protobuf envelope: any built-in kind, by the definitions and field
// numbers in api/. Answers are JSON or YAML, which every client that sends protobuf also takes.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"

namespace skiff::apiserver {

inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// The object as JSON: what Go leaves out of JSON is left out. kBadRequest for bytes that are none,
// kUnsupportedMediaType for a kind without definition here.
Result<json::value> decode_protobuf(const schema::Registry& registry, std::string_view bytes);

}  // namespace skiff::apiserver
