// A kind of ours as the CustomResourceDefinition that makes another API server serve it.
#pragma once

#include "api/kind.h"
#include "base/json.h"
#include "schema/registry.h"

namespace skiff::api {

// Definitions that the kind's schema refers to (a pod template) are not written out: those places
// take any object, and the controller says what is wrong with it.
json::value definition_of(const Kind& kind, const schema::Registry& registry);

}  // namespace skiff::api
