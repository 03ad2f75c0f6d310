// Filling in what an object leaves out.
#pragma once

#include "base/json.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

// Every absent property with a default gets it, at every depth that the object (or a default) has.
// A null where null is not allowed counts as absent. Applying it twice changes nothing.
void apply_defaults(const Registry& registry, const Schema& schema, json::value& value);

}  // namespace skiff::schema
