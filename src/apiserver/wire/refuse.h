// What the router refuses before anybody looks at the request: kinds, sub-resources, scopes,
// methods and media types that are not there.
#pragma once

#include <optional>

#include "apiserver/kinds.h"
#include "base/http.h"

namespace skiff::apiserver {

// Nothing where the request may go on. `kind` is null where the route names none that is served.
std::optional<http::Response> refuse_route(const KindTable& kinds, const ServedKind* kind,
                                           const Route& route, const http::Request& request);

// Of a path with empty steps in it.
http::Response refuse_gaps(const KindTable& kinds, std::string_view path, const Route& route);

}  // namespace skiff::apiserver
