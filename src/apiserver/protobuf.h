// Request bodies in Kubernetes' protobuf envelope. kubectl writes a few kinds that way
// (`kubectl create namespace`); answers are JSON always, which every client accepts.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// kUnsupportedMediaType for a kind whose fields are not known here.
Result<json::value> decode_protobuf(std::string_view bytes);

}  // namespace skiff::apiserver
