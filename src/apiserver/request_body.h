// What a client sends with a write: the body in one of three encodings, and the options in the
// query.
#pragma once

#include <string>
#include <vector>

#include "apiserver/writes.h"
#include "base/http.h"

namespace skiff::apiserver {

// What Content-Type names, in lower case and without parameters.
std::string media_type(const http::Request& request);

// kUnsupportedMediaType, kTooLarge or kBadRequest. Null where a body that need not be there is
// empty; `kind` names the object that one must hold, and is empty where none need be.
// `doubled` hears of the keys that a YAML text gives twice.
Result<json::value> parse_body(const http::Request& request, const schema::Registry& registry,
                               std::string_view kind, std::vector<std::string>& doubled);
Result<void> check_size(const http::Request& request);
// JSON as Go reads it: what is no character becomes U+FFFD.
Result<json::value> parse_json(std::string_view text);
// The media types of patches that the kind takes.
std::vector<std::string_view> patch_types(const ServedKind& kind);
Result<PatchType> patch_type(const http::Request& request, const ServedKind& kind);

// dryRun, fieldValidation, fieldManager, and whether force makes sense.
Result<void> read_options(const http::Request& http, const http::Url& url, WriteRequest& request);
// DeleteOptions from the body, or from the query where there is none.
Result<void> read_delete_options(const json::value& body, const http::Url& url,
                                 WriteRequest& request);

// Warning headers, each once. Where they have more than 4096 characters in all, each has at most
// 256 and the last ones go.
void add_warnings(const std::vector<std::string>& warnings, http::Response& response);
// The same for one that comes before those that are there.
void warn_first(const std::string& warning, http::Response& response);

}  // namespace skiff::apiserver
