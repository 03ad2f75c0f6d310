// What a client sends with a write: the body in one of three encodings, and the options in the
// query.
#pragma once

#include <string>
#include <vector>

#include "apiserver/writes.h"
#include "base/http.h"

namespace skiff::apiserver {

// Null for an empty body. kUnsupportedMediaType, kTooLarge or kBadRequest.
Result<json::value> parse_body(const http::Request& request);
Result<PatchType> patch_type(const http::Request& request, const ServedKind& kind);

// dryRun, fieldValidation and fieldManager.
Result<void> read_options(const http::Url& url, WriteRequest& request);
// DeleteOptions from the body and the query; the body wins.
Result<void> read_delete_options(const json::value& body, const http::Url& url,
                                 WriteRequest& request);

// Warning headers: each at most 256 characters, 4096 in all.
void add_warnings(const std::vector<std::string>& warnings, http::Response& response);

}  // namespace skiff::apiserver
