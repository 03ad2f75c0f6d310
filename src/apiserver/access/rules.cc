#include "apiserver/access/rules.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/selectors.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kWildcard = "*";

bool has_word(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool has_or_all(const std::vector<std::string>& list, std::string_view word) {
  return has_word(list, word) || has_word(list, kWildcard);
}

// "*/scale" stands for the scale of everything.
bool resource_matches(const std::vector<std::string>& list, std::string_view combined) {
  if (has_or_all(list, combined)) return true;
  const std::size_t slash = combined.find('/');
  return slash != std::string_view::npos &&
         has_word(list, "*" + std::string(combined.substr(slash)));
}

// A list or watch of one object by its name may be allowed by a rule for that name.
std::string name_selected_by(const http::Url& url) {
  const auto given = url.param("fieldSelector");
  if (!given) return {};
  const auto selector = FieldSelector::parse(*given);
  if (!selector) return {};
  for (const FieldSelector::Term& term : selector->terms()) {
    if (term.path == "metadata.name" && !term.negated) return term.value;
  }
  return {};
}

}  // namespace

bool url_matches(std::string_view pattern, std::string_view path) {
  if (pattern == path || pattern == kWildcard) return true;
  if (!pattern.ends_with('*')) return false;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

json::array words(const std::vector<std::string>& list) {
  json::array out;
  for (const std::string& word : list) out.emplace_back(json::string(word));
  return out;
}

std::string Action::combined() const {
  return subresource.empty() ? resource : resource + "/" + subresource;
}

Action action_of(const Route& route, const http::Url& url, std::string_view method) {
  if (!route.resource()) {
    return {.verb = lower(method), .on_path = true, .path = url.path};
  }
  Action action{.verb = std::string(verb_name(route.verb)),
                .group = route.group,
                .resource = route.plural,
                .subresource = route.subresource,
                .ns = route.ns,
                .name = route.name};
  // A namespace belongs to itself, so that its own administrators may read it.
  if (route.group.empty() && route.plural == "namespaces" && route.ns.empty()) {
    action.ns = route.name;
  }
  if (action.name.empty() && (route.verb == Verb::kList || route.verb == Verb::kWatch)) {
    action.name = name_selected_by(url);
  }
  return action;
}

Rule rule_of(const json::value& object) {
  return {.verbs = json::strings(json::get_array(object, {"verbs"})),
          .groups = json::strings(json::get_array(object, {"apiGroups"})),
          .resources = json::strings(json::get_array(object, {"resources"})),
          .names = json::strings(json::get_array(object, {"resourceNames"})),
          .urls = json::strings(json::get_array(object, {"nonResourceURLs"}))};
}

std::vector<Rule> rules_of(const json::value& role) {
  std::vector<Rule> out;
  for (const json::value& rule : json::get_array(role, {"rules"})) out.push_back(rule_of(rule));
  return out;
}

json::object to_json(const Rule& rule) {
  json::object out{{"verbs", words(rule.verbs)}};
  if (!rule.groups.empty()) out["apiGroups"] = words(rule.groups);
  if (!rule.resources.empty()) out["resources"] = words(rule.resources);
  if (!rule.names.empty()) out["resourceNames"] = words(rule.names);
  if (!rule.urls.empty()) out["nonResourceURLs"] = words(rule.urls);
  return out;
}

json::array to_json(const std::vector<Rule>& rules) {
  json::array out;
  for (const Rule& rule : rules) out.emplace_back(to_json(rule));
  return out;
}

std::size_t json_bytes(const Rule& rule) {
  std::size_t out = sizeof(R"({"verbs":[],"apiGroups":[],"resources":[]},)");
  for (const auto* list : {&rule.verbs, &rule.groups, &rule.resources, &rule.names, &rule.urls}) {
    for (const std::string& word : *list) out += word.size() + 3;  // quotes and a comma
  }
  return out;
}

bool allows(const Rule& rule, const Action& action) {
  if (!has_or_all(rule.verbs, action.verb)) return false;
  if (action.on_path) {
    return std::ranges::any_of(
        rule.urls, [&](const std::string& url) { return url_matches(url, action.path); });
  }
  return has_or_all(rule.groups, action.group) &&
         resource_matches(rule.resources, action.combined()) &&
         (rule.names.empty() || has_word(rule.names, action.name));
}

std::vector<Rule> compact(const std::vector<Rule>& rules) {
  std::vector<Rule> out;
  std::map<std::tuple<std::string, std::string, std::vector<std::string>>, std::size_t> places;
  for (const Rule& rule : rules) {
    const bool simple = rule.urls.empty() && rule.groups.size() == 1 &&
                        rule.resources.size() == 1 && rule.names.size() <= 1;
    if (simple) {
      const auto [at, fresh] =
          places.try_emplace({rule.groups.front(), rule.resources.front(), rule.names}, out.size());
      if (!fresh) {
        std::vector<std::string>& verbs = out[at->second].verbs;
        verbs.insert(verbs.end(), rule.verbs.begin(), rule.verbs.end());
        continue;
      }
    }
    out.push_back(rule);
  }
  return out;
}

std::string in_quotes(std::string_view text) { return json::serialize(json::string(text)); }

std::string in_quotes(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& word : list) {
    if (out.size() > 1) out += ' ';
    out += in_quotes(word);
  }
  return out + "]";
}

std::string describe(const Rule& rule) {
  std::string out;
  const auto add = [&](std::string_view name, const std::vector<std::string>& list) {
    if (list.empty()) return;
    if (!out.empty()) out += ", ";
    out += std::string(name) + ":" + in_quotes(list);
  };
  add("APIGroups", rule.groups);
  add("Resources", rule.resources);
  add("NonResourceURLs", rule.urls);
  add("ResourceNames", rule.names);
  add("Verbs", rule.verbs);
  return "{" + out + "}";
}

}  // namespace skiff::apiserver
