#include "apiserver/wire/refuse.h"

#include <algorithm>

#include "apiserver/discovery.h"
#include "apiserver/negotiate.h"
#include "apiserver/request_body.h"
#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

http::Response not_allowed() {
  return routing_response(Code::kMethodNotAllowed, method_not_allowed().message);
}

// A path names an object, or all of them, or all of all namespaces; not every verb fits each.
bool place_fits(const ServedKind& kind, const Route& route) {
  if (!kind.resource().namespaced) return route.ns.empty();
  return !route.ns.empty() || route.name.empty() || route.verb == Verb::kWatch;
}

bool verb_fits(const ServedKind& kind, const Route& route) {
  const bool everywhere = kind.resource().namespaced && route.ns.empty();
  if (everywhere && route.verb != Verb::kList && route.verb != Verb::kWatch) return false;
  const bool one = !route.name.empty();
  // A new object's name is in its body, so there is nothing to post to an object itself.
  if (route.verb == Verb::kCreate) return !one || !route.subresource.empty();
  if (route.verb == Verb::kUpdate || route.verb == Verb::kPatch) return one;
  return true;
}

}  // namespace

std::optional<http::Response> refuse_route(const KindTable& kinds, const ServedKind* kind,
                                           const Route& route, const http::Request& request) {
  if (kind == nullptr || !place_fits(*kind, route)) return no_such_resource(kinds, route.group);
  const auto below = subresources(*kind);
  if (!route.subresource.empty() &&
      std::ranges::count(below, route.subresource, &api::Subresource::name) == 0) {
    if (kind->custom) return error_response(not_found(kind->resource(), route.name));
    return no_such_resource(kinds, route.group);
  }
  if (!verb_fits(*kind, route) || !allows(*kind, route.subresource, route.verb)) {
    return not_allowed();
  }
  // Streams and text have media types of their own.
  const bool object =
      route.subresource.empty() || route.subresource == "status" || route.subresource == "scale";
  if (kind->custom || !object) return {};
  if (route.verb == Verb::kPatch &&
      std::ranges::count(patch_types(*kind), media_type(request)) == 0) {
    return routing_response(Code::kUnsupportedMediaType, "415: Unsupported Media Type");
  }
  if (unroutable(http::header(request.headers, "Accept"))) {
    return routing_response(
        Code::kNotAcceptable,
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        "application/json;stream=watch");
  }
  return {};
}

http::Response refuse_gaps(const KindTable& kinds, std::string_view path, const Route& route) {
  const bool known = path.starts_with("/api/v1/") || path.starts_with("/apis/");
  if (known && route.resource()) return no_such_resource(kinds, route.group);
  return text_response(404, "404 page not found\n");
}

}  // namespace skiff::apiserver
