#include "apiserver/routes.h"

#include <span>

#include "apiserver/wire/list_options.h"
#include "base/selectors.h"

namespace skiff::apiserver {
namespace {

Verb route_verb(const http::Url& url, std::string_view method, const Route& route, bool watch) {
  if (watch) return method == "GET" ? Verb::kWatch : Verb::kNone;
  if (method == "GET") {
    if (!route.name.empty()) return Verb::kGet;
    return query_flag(url, "watch") ? Verb::kWatch : Verb::kList;
  }
  // Whoever may read from a program in a pod may also ask whether there is something to read.
  if (method == "HEAD" && route.subresource == "proxy") return Verb::kGet;
  if (method == "POST") return Verb::kCreate;
  if (method == "PUT") return Verb::kUpdate;
  if (method == "PATCH") return Verb::kPatch;
  if (method == "DELETE") return route.name.empty() ? Verb::kDeleteCollection : Verb::kDelete;
  return Verb::kNone;
}

// The name in a field selector "metadata.name=x", alone or with other terms.
std::string route_selected_name(const http::Url& url) {
  const auto selector = FieldSelector::parse(url.param("fieldSelector").value_or(""));
  if (!selector) return {};
  for (const FieldSelector::Term& term : selector->terms()) {
    if (term.path == "metadata.name" && !term.negated) return term.value;
  }
  return {};
}

// The two words that follow /namespaces/NAME and mean the Namespace itself.
bool namespace_subresource(std::string_view word) { return word == "status" || word == "finalize"; }

}  // namespace

std::string_view verb_name(Verb verb) {
  switch (verb) {
    case Verb::kNone:
      return "";
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
    case Verb::kDeleteCollection:
      return "deletecollection";
  }
  return "";
}

std::optional<Route> parse_route(const http::Url& url, std::string_view method) {
  Route route;
  std::span<const std::string> rest(url.segments);
  if (rest.empty()) return route;
  const bool core = rest[0] == "api";
  if (!core && rest[0] != "apis") return route;
  const std::size_t prefix = core ? 2 : 3;
  if (rest.size() <= prefix) return route;  // discovery
  if (!core) route.group = rest[1];
  route.version = rest[prefix - 1];
  rest = rest.subspan(prefix);
  // The form of watches before ?watch=1; client libraries of old still use it.
  const bool watch = rest[0] == "watch" && rest.size() > 1;
  if (watch) rest = rest.subspan(1);
  const bool of_namespace =
      rest[0] == "namespaces" &&
      (rest.size() < 3 || (core && rest.size() == 3 && namespace_subresource(rest[2])));
  if (rest[0] == "namespaces" && !of_namespace) {
    route.ns = rest[1];
    rest = rest.subspan(2);
  }
  // Behind a proxy are the paths of somebody else.
  if (rest.size() > 3 && rest[2] != "proxy") return {};
  route.plural = rest[0];
  if (rest.size() > 1) route.name = rest[1];
  if (rest.size() > 2) route.subresource = rest[2];
  if (watch && !route.subresource.empty()) return {};
  route.verb = route_verb(url, method, route, watch);
  if (route.verb == Verb::kList || route.verb == Verb::kWatch ||
      route.verb == Verb::kDeleteCollection) {
    route.selected_name = route.name.empty() ? route_selected_name(url) : route.name;
  }
  return route;
}

}  // namespace skiff::apiserver
