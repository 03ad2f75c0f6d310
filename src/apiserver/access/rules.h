// The rules of roles as values: which action a rule allows, and which rules cover others. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/routes.h"
#include "base/http.h"
#include "base/json.h"

namespace skiff::apiserver {

// What somebody wants to do, in the words of RBAC.
struct Action {
  std::string verb = {};
  // A request on a resource...
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string ns = {};  // empty: the cluster, or all namespaces
  std::string name = {};
  // ... or on a path that is none.
  bool on_path = false;
  std::string path = {};

  std::string combined() const;  // pods/log
};

// `route` as parse_route gave it; where it is no resource's, the path and method count.
Action action_of(const Route& route, const http::Url& url, std::string_view method);

// rbac.authorization.k8s.io/v1 PolicyRule.
struct Rule {
  std::vector<std::string> verbs = {};
  std::vector<std::string> groups = {};
  std::vector<std::string> resources = {};
  std::vector<std::string> names = {};
  std::vector<std::string> urls = {};

  bool operator==(const Rule&) const = default;
};

Rule rule_of(const json::value& object);
std::vector<Rule> rules_of(const json::value& role);  // its `rules`
json::object to_json(const Rule& rule);
json::array to_json(const std::vector<Rule>& rules);

std::size_t json_bytes(const Rule& rule);  // of its text, about

bool allows(const Rule& rule, const Action& action);
// A path of nonResourceURLs, which may end in "*", and one that somebody wants.
bool url_matches(std::string_view pattern, std::string_view path);

// Rules that differ by their verbs alone as one, for people to read.
std::vector<Rule> compact(const std::vector<Rule>& rules);
// {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}
std::string describe(const Rule& rule);
std::string in_quotes(std::string_view text);
std::string in_quotes(const std::vector<std::string>& list);  // ["a" "b"]
json::array words(const std::vector<std::string>& list);      // the same as JSON

}  // namespace skiff::apiserver
