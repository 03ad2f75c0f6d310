#include "cli/access_review.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

constexpr std::string_view kAuthorization = "authorization.k8s.io/v1";

std::string bracketed(const json::value& rule, std::string_view field) {
  std::vector<std::string> words = json::strings(json::get_array(rule, {field}));
  return fmt::format("[{}]", join(words, " "));
}

// pods, pods/log, tfjobs.kubeflow.org, *.*: resources with their groups.
std::string resource_names(const json::value& rule) {
  std::vector<std::string> out;
  for (const std::string& resource : json::strings(json::get_array(rule, {"resources"}))) {
    std::vector<std::string> groups = json::strings(json::get_array(rule, {"apiGroups"}));
    if (groups.empty()) groups.emplace_back();
    for (const std::string& group : groups) {
      const std::size_t slash = resource.find('/');
      const std::string plural = resource.substr(0, slash);
      const std::string sub = slash == std::string::npos ? "" : resource.substr(slash);
      out.push_back(group.empty() ? plural + sub : plural + "." + group + sub);
    }
  }
  return join(out, ",");
}

}  // namespace

std::string kind_word(std::string_view target) {
  if (target.starts_with('/')) return {};
  return std::string(target.substr(0, target.find('/')));
}

Question question(std::string_view verb, std::string_view target,
                  const std::optional<api::Kind>& kind, std::string_view subresource,
                  std::string_view ns) {
  Question out{.verb = std::string(verb)};
  if (target.starts_with('/')) {
    out.path = target;
    return out;
  }
  const std::size_t slash = target.find('/');
  if (slash != std::string_view::npos) out.name = target.substr(slash + 1);
  out.subresource = subresource;
  out.resource = target.substr(0, slash);
  // A word the server does not know may still stand in a rule: resource.group.
  if (kind) {
    out.resource = kind->resource.plural;
    out.group = kind->resource.group;
  } else if (const std::size_t dot = out.resource.find('.'); dot != std::string::npos) {
    out.group = out.resource.substr(dot + 1);
    out.resource.resize(dot);
  }
  if (!kind || kind->resource.namespaced) out.ns = ns;
  return out;
}

json::value access_review(const Question& q) {
  json::object spec;
  if (!q.path.empty()) {
    spec["nonResourceAttributes"] = json::object{{"path", q.path}, {"verb", q.verb}};
  } else {
    json::object attributes{{"verb", q.verb}, {"resource", q.resource}};
    const auto add = [&](std::string_view field, const std::string& value) {
      if (!value.empty()) attributes[field] = value;
    };
    add("group", q.group);
    add("subresource", q.subresource);
    add("name", q.name);
    add("namespace", q.ns);
    spec["resourceAttributes"] = std::move(attributes);
  }
  return json::object{{"apiVersion", kAuthorization},
                      {"kind", "SelfSubjectAccessReview"},
                      {"spec", std::move(spec)}};
}

json::value rules_review(std::string_view ns) {
  return json::object{{"apiVersion", kAuthorization},
                      {"kind", "SelfSubjectRulesReview"},
                      {"spec", {{"namespace", ns}}}};
}

Verdict verdict_of(const json::value& review) {
  Verdict out{.allowed = json::get_bool(review, {"status", "allowed"}).value_or(false)};
  const std::string_view reason = json::get_string(review, {"status", "reason"});
  const std::string_view problem = json::get_string(review, {"status", "evaluationError"});
  out.reason = reason;
  if (!problem.empty()) out.reason += fmt::format("{}{}", reason.empty() ? "" : "; ", problem);
  return out;
}

std::string rules_text(const json::value& review) {
  std::vector<std::vector<std::string>> rows;
  for (const json::value& rule : json::get_array(review, {"status", "resourceRules"})) {
    rows.push_back(
        {resource_names(rule), "[]", bracketed(rule, "resourceNames"), bracketed(rule, "verbs")});
  }
  for (const json::value& rule : json::get_array(review, {"status", "nonResourceRules"})) {
    rows.push_back({"", bracketed(rule, "nonResourceURLs"), "[]", bracketed(rule, "verbs")});
  }
  std::ranges::sort(rows);
  rows.insert(rows.begin(), {"Resources", "Non-Resource URLs", "Resource Names", "Verbs"});
  std::string out = columns(rows);
  if (json::get_bool(review, {"status", "incomplete"}).value_or(false)) {
    out += fmt::format("The list is not complete: {}\n",
                       json::get_string(review, {"status", "evaluationError"}, "unknown"));
  }
  return out;
}

std::string whoami_text(const json::value& review) {
  std::vector<std::vector<std::string>> rows = {{"ATTRIBUTE", "VALUE"}};
  const json::object& user = json::get_object(review, {"status", "userInfo"});
  const json::value info(user);
  rows.push_back({"Username", std::string(json::get_string(info, {"username"}))});
  if (const auto uid = json::get_string(info, {"uid"}); !uid.empty()) {
    rows.push_back({"UID", std::string(uid)});
  }
  if (!json::get_array(info, {"groups"}).empty()) {
    rows.push_back({"Groups", bracketed(info, "groups")});
  }
  for (const auto& [key, values] : json::get_object(info, {"extra"})) {
    if (!values.is_array()) continue;
    rows.push_back({fmt::format("Extra: {}", std::string_view(key)),
                    fmt::format("[{}]", join(json::strings(values.get_array()), " "))});
  }
  return columns(rows);
}

}  // namespace skiff::cli
