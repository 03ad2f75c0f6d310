// /api, /apis and below: which kinds there are, in the old form and in the aggregated one.
#pragma once

#include <optional>

#include "apiserver/kinds.h"
#include "base/http.h"

namespace skiff::apiserver {

// Nothing where the path is not one of discovery or names a group that is not served.
std::optional<http::Response> discover(const KindTable& kinds, const http::Request& request,
                                       const http::Url& url);

// A strong validator of a body, in quotes.
std::string entity_tag(std::string_view body);
// The body with its tag, or 304 where the client has it already.
http::Response cacheable_response(const http::Request& request, std::string content_type,
                                  std::string body);

}  // namespace skiff::apiserver
