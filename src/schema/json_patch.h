// RFC 6902: a list of operations on a document.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace skiff::schema {

// All operations or none. A patch that is malformed is kBadRequest, one that does not fit the
// document kInvalid. Bounded: limits::kJsonPatchOperations, and what copies may add.
Result<json::value> apply_json_patch(json::value document, const json::value& patch);

}  // namespace skiff::schema
