// /api, /apis and below: which kinds there are, in the old form and in the aggregated one.
#pragma once

#include <optional>

#include "apiserver/kinds.h"
#include "base/http.h"

namespace skiff::apiserver {

// Nothing where the path is not one of discovery.
std::optional<http::Response> discover(const KindTable& kinds, const http::Request& request,
                                       const http::Url& url);

// A strong validator of a body, in quotes.
std::string entity_tag(std::string_view body);
// The body with its tag, or 304 where the client has it already.
http::Response cacheable_response(const http::Request& request, std::string content_type,
                                  std::string body);
http::Response cacheable_response(const http::Request& request, std::string content_type,
                                  const std::string& body, const std::string& tag);
// No such kind, or no such path below a group: plain text where the group is unknown or made of
// custom kinds, a Status where it is one of Kubernetes' own.
http::Response no_such_resource(const KindTable& kinds, std::string_view group);

}  // namespace skiff::apiserver
