// The sub-resource scale: any object with a number of replicas, seen as autoscaling/v1 Scale.
#pragma once

#include <vector>

#include "apiserver/kinds.h"
#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "store/store.h"

namespace skiff::apiserver {

// The Scale of an object as it is kept. Its kind must have scale paths. kInternal where a field
// there is of a wrong type, or the number of replicas of a custom object is not given.
Result<json::value> scale_of(const ServedKind& kind, const json::value& stored);
// The same after a write that was accepted; null where there is none to show.
json::value scale_or_null(const ServedKind& kind, const json::value& stored);

http::Response get_scale(const store::Store& store, const ServedKind& kind, const store::Key& key);

// The fields of a custom object that its definition says are those of a Scale. A write of the
// status is asked about what stands there only.
std::vector<Cause> check_scale(const ServedKind& kind, const json::value& object,
                               std::string_view subresource);

}  // namespace skiff::apiserver
