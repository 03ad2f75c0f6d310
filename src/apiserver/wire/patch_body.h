// The body of a patch, read and refused as the real server does it.
#pragma once

#include "apiserver/schema_gate.h"
#include "base/http.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

// kTooLarge, or kBadRequest where it is no JSON or of another shape than patches of the type have:
// a list of operations, or an object.
Result<json::value> parse_patch(const http::Request& request, PatchType type);

}  // namespace skiff::apiserver
