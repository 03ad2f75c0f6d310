#include "apiserver/access/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

std::string describe_subject(const Binding::Subject& subject, const std::string& binding_ns) {
  if (subject.kind != "ServiceAccount") {
    return fmt::format("{} {}", subject.kind, in_quotes(subject.name));
  }
  const std::string& ns = subject.ns.empty() ? binding_ns : subject.ns;
  return fmt::format("{} {}", subject.kind, in_quotes(subject.name + "/" + ns));
}

std::string source(const Binding& binding, const Binding::Subject& subject) {
  const bool cluster = binding.ns.empty();
  return fmt::format(
      "RBAC: allowed by {} {} of {} {} to {}", cluster ? "ClusterRoleBinding" : "RoleBinding",
      in_quotes(cluster ? binding.name : binding.name + "/" + binding.ns), binding.role_kind,
      in_quotes(binding.role_name), describe_subject(subject, binding.ns));
}

std::string absent(const Binding& binding) {
  if (binding.role_kind != "Role" && binding.role_kind != "ClusterRole") {
    return fmt::format("unsupported role reference kind: {}", in_quotes(binding.role_kind));
  }
  return fmt::format("{}.{} {} not found", lower(binding.role_kind), kRbacGroup,
                     in_quotes(binding.role_name));
}

std::string join_problems(std::vector<std::string> problems) {
  if (problems.empty()) return {};
  std::ranges::sort(problems);
  const auto rest = std::ranges::unique(problems);
  problems.erase(rest.begin(), rest.end());
  const std::string text = join(problems, ", ");
  return "RBAC: " + (problems.size() > 1 ? "[" + text + "]" : text);
}

}  // namespace

std::string service_account_user(std::string_view ns, std::string_view name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

Binding binding_of(const json::value& object) {
  Binding out{.ns = std::string(api::ns(object)),
              .name = std::string(api::name(object)),
              .role_kind = std::string(json::get_string(object, {"roleRef", "kind"})),
              .role_name = std::string(json::get_string(object, {"roleRef", "name"}))};
  for (const json::value& subject : json::get_array(object, {"subjects"})) {
    out.subjects.push_back({.kind = std::string(json::get_string(subject, {"kind"})),
                            .ns = std::string(json::get_string(subject, {"namespace"})),
                            .name = std::string(json::get_string(subject, {"name"}))});
  }
  return out;
}

Policy::Policy(Roles roles, const std::vector<std::shared_ptr<const Binding>>& bindings)
    : roles_(std::move(roles)) {
  std::size_t number = 0;
  // A thousand small bindings may give somebody the same large role: it is looked through once.
  std::set<std::pair<const void*, const void*>> given;
  for (const auto& binding : bindings) {
    ++number;
    const Rules rules = role(binding->role_kind, binding->ns, binding->role_name);
    for (const Binding::Subject& subject : binding->subjects) {
      Grants* grants = nullptr;
      if (subject.kind == "User") grants = &users_[subject.name];
      if (subject.kind == "Group") grants = &groups_[subject.name];
      if (subject.kind == "ServiceAccount") {
        const std::string& ns = subject.ns.empty() ? binding->ns : subject.ns;
        if (!ns.empty()) grants = &users_[service_account_user(ns, subject.name)];
      }
      if (grants == nullptr) continue;
      auto& list = binding->ns.empty() ? grants->everywhere : grants->in[binding->ns];
      if (rules && !given.emplace(&list, rules.get()).second) continue;
      list.push_back({.binding = number,
                      .rules = rules,
                      .text = rules ? source(*binding, subject) : absent(*binding)});
    }
  }
}

Rules Policy::role(std::string_view kind, const std::string& ns, const std::string& name) const {
  if (kind != "Role" && kind != "ClusterRole") return nullptr;
  const auto found = roles_.find({kind == "Role" ? ns : std::string(), name});
  // A Role is always in a namespace, so a ClusterRoleBinding cannot name one.
  if (found == roles_.end() || (kind == "Role" && ns.empty())) return nullptr;
  return found->second;
}

template <class Visit>
void Policy::visit(const Identity& who, const std::string& ns, Visit&& visit) const {
  std::vector<const Grants*> holders;
  if (const auto found = users_.find(who.user); found != users_.end()) {
    holders.push_back(&found->second);
  }
  for (const std::string& group : who.groups) {
    if (const auto found = groups_.find(group); found != groups_.end()) {
      holders.push_back(&found->second);
    }
  }
  for (const Grants* grants : holders) {
    for (const Grant& grant : grants->everywhere) {
      if (!visit(grant)) return;
    }
  }
  if (ns.empty()) return;
  for (const Grants* grants : holders) {
    const auto local = grants->in.find(ns);
    if (local == grants->in.end()) continue;
    for (const Grant& grant : local->second) {
      if (!visit(grant)) return;
    }
  }
}

Decision Policy::decide(const Identity& who, const Action& action) const {
  // The server's own people: what is left when somebody has removed every role.
  if (who.member_of(kMasters)) return {.allowed = true};
  const Grant* allowing = nullptr;
  std::vector<std::string> problems;
  visit(who, action.on_path ? std::string() : action.ns, [&](const Grant& grant) {
    if (!grant.rules) {
      problems.push_back(grant.text);
    } else if (std::ranges::any_of(*grant.rules,
                                   [&](const Rule& rule) { return allows(rule, action); })) {
      allowing = &grant;
    }
    return allowing == nullptr;
  });
  if (allowing != nullptr) return {.allowed = true, .reason = allowing->text};
  return {.reason = join_problems(std::move(problems))};
}

std::vector<Rules> Policy::rules_for(const Identity& who, const std::string& ns,
                                     std::vector<std::string>* problems) const {
  std::map<std::size_t, const Grant*> grants;
  visit(who, ns, [&](const Grant& grant) {
    grants.try_emplace(grant.binding, &grant);
    return true;
  });
  std::vector<Rules> out;
  std::set<const std::vector<Rule>*> seen;
  for (const auto& [number, grant] : grants) {
    if (grant->rules) {
      if (seen.insert(grant->rules.get()).second) out.push_back(grant->rules);
    } else if (problems != nullptr) {
      problems->push_back(grant->text);
    }
  }
  return out;
}

}  // namespace skiff::apiserver
