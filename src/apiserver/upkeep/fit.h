// What the schema of a custom kind makes of an object that was written under another: an older one
// of the same version, or that of another version.
#pragma once

#include "base/json.h"
#include "schema/schema.h"

namespace skiff::apiserver {

// Fields that the schema does not know go, and so do nulls where it allows none; defaults come.
// Metadata stays as it is.
void fit_custom(const schema::Schema& schema, json::value& object);
// Whether fields of the object would go.
bool fits_custom(const schema::Schema& schema, const json::value& object);

}  // namespace skiff::apiserver
