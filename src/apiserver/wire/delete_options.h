// The body of a delete: DeleteOptions, or what the real server says of anything else.
#pragma once

#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"

namespace skiff::apiserver {

// Null where there is no body. What cannot be read is answered with 500 and no reason, as the real
// server does it.
Result<json::value> parse_delete_options(const http::Request& request,
                                         const schema::Registry& registry);

}  // namespace skiff::apiserver
