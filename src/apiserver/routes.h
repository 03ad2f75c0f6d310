// What a URL and a method ask for, before anybody has looked whether it exists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"

namespace skiff::apiserver {

// The words of the real server's authorizer. kNone: not a request on a resource.
enum class Verb {
  kNone,
  kGet,
  kList,
  kWatch,
  kCreate,
  kUpdate,
  kPatch,
  kDelete,
  kDeleteCollection
};
std::string_view verb_name(Verb verb);

struct Route {
  Verb verb = Verb::kNone;
  std::string group = {};
  std::string version = {};
  std::string plural = {};
  std::string ns = {};  // empty: all namespaces, or a cluster-scoped kind
  std::string name = {};
  std::string subresource = {};
  // The one name that the field selector of a list or watch asks for; rules for names apply to it.
  std::string selected_name = {};

  bool resource() const { return verb != Verb::kNone; }
};

// Nothing where the path is below /api or /apis but follows no rule of the grammar. Verb::kNone
// with a plural: a method that means nothing there.
std::optional<Route> parse_route(const http::Url& url, std::string_view method);

}  // namespace skiff::apiserver
