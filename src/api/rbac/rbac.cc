#include "api/rbac/rbac.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void check_policy_rule(const json::value& rule, bool namespaced, const std::string& path,
                       Rules& rules) {
  if (json::get_array(rule, {"verbs"}).empty()) {
    rules.say(schema::required(child(path, "verbs"), "verbs must contain at least one value"));
  }
  const json::array& urls = json::get_array(rule, {"nonResourceURLs"});
  const bool groups = !json::get_array(rule, {"apiGroups"}).empty();
  const bool resources = !json::get_array(rule, {"resources"}).empty();
  if (!urls.empty()) {
    const std::string at = child(path, "nonResourceURLs");
    if (namespaced) {
      rules.say(schema::invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"));
    }
    if (groups || resources || !json::get_array(rule, {"resourceNames"}).empty()) {
      rules.say(schema::invalid(
          at, urls, "rules cannot apply to both regular resources and non-resource URLs"));
    }
    return;
  }
  if (!groups) {
    rules.say(schema::required(child(path, "apiGroups"),
                               "resource rules must supply at least one api group"));
  }
  if (!resources) {
    rules.say(schema::required(child(path, "resources"),
                               "resource rules must supply at least one resource"));
  }
}

void check_policy_rules(const json::value& object, bool namespaced, Rules& rules) {
  const json::array& list = json::get_array(object, {"rules"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_policy_rule(list[i], namespaced, child("rules", i), rules);
  }
}

std::vector<Cause> validate_role(const json::value& object, const Admission&) {
  Rules rules;
  check_policy_rules(object, true, rules);
  return rules.take();
}

std::vector<Cause> validate_cluster_role(const json::value& object, const Admission&) {
  Rules rules;
  check_policy_rules(object, false, rules);
  if (const json::value* aggregation = present(object, {"aggregationRule"})) {
    const std::string path = "aggregationRule.clusterRoleSelectors";
    const json::array& selectors = json::get_array(*aggregation, {"clusterRoleSelectors"});
    if (selectors.empty()) {
      rules.say(schema::required(
          path, "at least one clusterRoleSelector required if aggregationRule is non-nil"));
    }
    for (std::size_t i = 0; i < selectors.size(); ++i) {
      rules.label_selector(&selectors[i], child(path, i));
    }
  }
  return rules.take();
}

void default_binding(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  put(*root, "roleRef", json::object());
  if (json::object* ref = find_object(*root, "roleRef"))
    put(*ref, "apiGroup", json::string(kGroup));
  each(*root, "subjects", [](json::object& subject) {
    const std::string kind(json::get_string(subject, {"kind"}));
    if (kind == "User" || kind == "Group") put(subject, "apiGroup", json::string(kGroup));
  });
}

void check_subject(const json::value& subject, bool namespaced, const std::string& path,
                   Rules& rules) {
  const bool named = rules.needs(subject, path, "name");
  const std::string_view kind = json::get_string(subject, {"kind"});
  const std::string_view group = json::get_string(subject, {"apiGroup"});
  if (kind == "ServiceAccount") {
    const std::string_view name = json::get_string(subject, {"name"});
    if (named) rules.called(child(path, "name"), name, names::check_dns1123_subdomain(name));
    if (!group.empty()) rules.one_of(child(path, "apiGroup"), group, {""});
    if (!namespaced) rules.needs(subject, path, "namespace");
  } else if (kind == "User" || kind == "Group") {
    rules.one_of(child(path, "apiGroup"), group, {std::string(kGroup)});
  } else {
    rules.one_of(child(path, "kind"), kind, {"ServiceAccount", "User", "Group"});
  }
}

std::vector<Cause> validate_any_binding(const json::value& object, const Admission& context,
                                        bool namespaced) {
  Rules rules;
  rules.one_of("roleRef.apiGroup", json::get_string(object, {"roleRef", "apiGroup"}),
               {std::string(kGroup)});
  std::vector<std::string> kinds = {"ClusterRole"};
  if (namespaced) kinds.insert(kinds.begin(), "Role");
  rules.one_of("roleRef.kind", json::get_string(object, {"roleRef", "kind"}), kinds);
  const std::string_view name = json::get_string(object, {"roleRef", "name"});
  if (name.empty()) {
    rules.say(schema::required("roleRef.name"));
  } else {
    rules.called("roleRef.name", name, names::check_path_segment(name));
  }
  const json::array& subjects = json::get_array(object, {"subjects"});
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    check_subject(subjects[i], namespaced, child("subjects", i), rules);
  }
  if (context.old != nullptr) {
    const json::object& before = json::get_object(*context.old, {"roleRef"});
    const json::object& now = json::get_object(object, {"roleRef"});
    if (before != now) {
      // As the server prints its own type.
      rules.say(schema::invalid(
          "roleRef",
          json::object{
              {"APIGroup", now.contains("apiGroup") ? now.at("apiGroup") : json::value("")},
              {"Kind", json::get_string(now, {"kind"})},
              {"Name", json::get_string(now, {"name"})}},
          "cannot change roleRef"));
    }
  }
  return rules.take();
}

std::vector<Cause> validate_binding(const json::value& object, const Admission& context) {
  return validate_any_binding(object, context, true);
}

std::vector<Cause> validate_cluster_binding(const json::value& object, const Admission& context) {
  return validate_any_binding(object, context, false);
}

json::array role_cells(const json::value& object, std::int64_t) {
  return {json::string(json::get_string(object, {"metadata", "creationTimestamp"}))};
}

json::array binding_cells(const json::value& object, std::int64_t now_s) {
  std::vector<std::string> users, groups, accounts;
  for (const json::value& subject : json::get_array(object, {"subjects"})) {
    const std::string_view kind = json::get_string(subject, {"kind"});
    const std::string name(json::get_string(subject, {"name"}));
    if (kind == "User") users.push_back(name);
    if (kind == "Group") groups.push_back(name);
    if (kind == "ServiceAccount") {
      accounts.push_back(fmt::format("{}/{}", json::get_string(subject, {"namespace"}), name));
    }
  }
  return {json::string(fmt::format("{}/{}", json::get_string(object, {"roleRef", "kind"}),
                                   json::get_string(object, {"roleRef", "name"}))),
          json::string(age_cell(object, now_s)), json::string(join(users, ", ")),
          json::string(join(groups, ", ")), json::string(join(accounts, ", "))};
}

Kind role(std::string plural, std::string kind, bool namespaced) {
  return {.resource = {std::string(kGroup), "v1", std::move(plural), kind, namespaced},
          .singular = lower(kind),
          .has_generation = false,
          .schema = "io.k8s.api.rbac.v1." + kind,
          .columns = {{"Created At", "date"}},
          .validate = namespaced ? validate_role : validate_cluster_role,
          .cells = role_cells};
}

Kind binding(std::string plural, std::string kind, bool namespaced) {
  return {.resource = {std::string(kGroup), "v1", std::move(plural), kind, namespaced},
          .singular = lower(kind),
          .has_generation = false,
          .schema = "io.k8s.api.rbac.v1." + kind,
          .columns = {{"Role", "string"},
                      {"Age", "string"},
                      {"Users", "string", "", 1},
                      {"Groups", "string", "", 1},
                      {"ServiceAccounts", "string", "", 1}},
          .set_defaults = default_binding,
          .validate = namespaced ? validate_binding : validate_cluster_binding,
          .cells = binding_cells};
}

}  // namespace

std::vector<Kind> rbac_kinds() {
  return {role("clusterroles", "ClusterRole", false), role("roles", "Role", true),
          binding("clusterrolebindings", "ClusterRoleBinding", false),
          binding("rolebindings", "RoleBinding", true)};
}

}  // namespace skiff::api
