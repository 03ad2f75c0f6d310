// What a failed answer of an API server means.
#pragma once

#include "base/http.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::client {

// From a Status object, with its causes and details.
Error error_of_status(const json::value& status);
// From any answer that is no success: its Status, or what can be told without one.
Error error_of(const http::Response& response);
// The JSON body of a success, or the error.
Result<json::value> body_of(const http::Response& response);

}  // namespace skiff::client
