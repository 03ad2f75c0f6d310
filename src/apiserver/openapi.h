// /openapi/v3: what kubectl reads to know what the server validates and to explain fields.
#pragma once

#include <optional>

#include "apiserver/kinds.h"
#include "apiserver/schema_gate.h"
#include "base/http.h"

namespace skiff::apiserver {

// Nothing where there is no such document.
std::optional<http::Response> serve_openapi(const KindTable& kinds, const SchemaGate& gate,
                                            const http::Request& request, const http::Url& url);

}  // namespace skiff::apiserver
