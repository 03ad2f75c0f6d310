// RFC 7386: objects merge, null removes, anything else replaces.
#pragma once

#include "base/json.h"

namespace skiff::schema {

void apply_merge_patch(json::value& document, const json::value& patch);

// The patch that makes `from` into `to`; an empty object where they are equal.
json::value make_merge_patch(const json::value& from, const json::value& to);

}  // namespace skiff::schema
