// The OpenAPI v3 document of one group and version: its paths with their parameters, its schemas.
#pragma once

#include <string>

#include "apiserver/kinds.h"
#include "apiserver/schema_gate.h"
#include "base/json.h"

namespace skiff::apiserver {

json::object openapi_v3(const KindTable& kinds, const SchemaGate& gate, const std::string& group,
                        const std::string& version);

}  // namespace skiff::apiserver
