// Kubernetes' strategic merge patch: like a merge patch, but lists that the schema gives a merge
// key merge item by item, and directives ($patch, $retainKeys, $setElementOrder/x,
// $deleteFromPrimitiveList/x) say what values cannot.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

Result<json::value> apply_strategic_merge(const Registry& registry, const Schema& schema,
                                          json::value document, const json::value& patch);

}  // namespace skiff::schema
