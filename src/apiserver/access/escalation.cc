#include "apiserver/access/escalation.h"

#include <fmt/format.h>

#include <set>

#include "api/meta.h"
#include "apiserver/access/coverage.h"
#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

// The garbage collector's fields give nobody anything.
bool only_ownership_changes(const json::value& object, const json::value& old) {
  json::value a = object, b = old;
  for (json::value* side : {&a, &b}) {
    json::object& metadata = json::make_object(*side, {"metadata"});
    for (std::string_view name :
         {"ownerReferences", "finalizers", "managedFields", "resourceVersion"}) {
      metadata.erase(name);
    }
  }
  return a == b;
}

std::vector<const Rule*> rules_in(const std::vector<Rules>& roles) {
  std::vector<const Rule*> out;
  for (const Rules& rules : roles) {
    for (const Rule& rule : *rules) out.push_back(&rule);
  }
  return out;
}

Result<void> holds(const Policy& policy, const WriteRequest& request,
                   const std::vector<Rule>& rules, std::string_view name) {
  const std::vector<Rules> held = policy.rules_for(request.user, request.ns);
  const auto lacking = missing(rules_in(held), rules);
  if (!lacking) {
    return std::unexpected(forbidden(request.kind->resource(), name, lacking.error().message));
  }
  if (lacking->rights.empty()) return {};
  std::set<std::string> lines;
  for (const Rule& rule : compact(lacking->rights)) lines.insert(describe(rule));
  return std::unexpected(forbidden(
      request.kind->resource(), name,
      fmt::format("user {} (groups={}) is attempting to grant RBAC permissions not currently "
                  "held:\n{}{}",
                  in_quotes(request.user.user), in_quotes(request.user.groups),
                  join({lines.begin(), lines.end()}, "\n"),
                  lacking->more ? "\nand others, too many to be listed" : "")));
}

bool aggregates(const json::value& role) {
  return !json::get_array(role, {"aggregationRule", "clusterRoleSelectors"}).empty();
}

Result<void> check_role(const Policy& policy, const WriteRequest& request, const json::value& role,
                        const json::value* old) {
  const api::Resource& resource = request.kind->resource();
  const Action escalate{.verb = "escalate",
                        .group = resource.group,
                        .resource = resource.plural,
                        .ns = request.ns,
                        .name = request.name};
  if (policy.decide(request.user, escalate).allowed) return {};
  SKIFF_TRY(holds(policy, request, rules_of(role), api::name(role)));
  if (!aggregates(role) && (old == nullptr || !aggregates(*old))) return {};
  // A selector can gather anything, so whoever sets one must hold everything.
  const std::vector<Rule> everything = {{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}},
                                        {.verbs = {"*"}, .urls = {"*"}}};
  const std::vector<Rules> held = policy.rules_for(request.user, request.ns);
  const auto lacking = missing(rules_in(held), everything);
  if (lacking && lacking->rights.empty()) return {};
  return std::unexpected(forbidden(resource, api::name(role),
                                   "must have cluster-admin privileges to use the "
                                   "aggregationRule"));
}

Result<void> check_binding(const Policy& policy, const WriteRequest& request,
                           const json::value& binding) {
  const std::string kind(json::get_string(binding, {"roleRef", "kind"}));
  const std::string name(json::get_string(binding, {"roleRef", "name"}));
  const bool known = kind == "Role" || kind == "ClusterRole";
  const std::string plural = kind == "Role" ? "roles" : "clusterroles";
  const std::string group(json::get_string(binding, {"roleRef", "apiGroup"}));
  const Action bind{
      .verb = "bind", .group = group, .resource = plural, .ns = request.ns, .name = name};
  if (known && policy.decide(request.user, bind).allowed) return {};
  const Rules rules = policy.role(kind, request.ns, name);
  if (!known) {
    return fail(Code::kInternal,
                fmt::format("Internal error occurred: unsupported role reference kind: {}",
                            in_quotes(kind)));
  }
  if (!rules) {
    return std::unexpected(
        not_found({.group = std::string(kRbacGroup), .plural = plural, .kind = kind}, name));
  }
  return holds(policy, request, *rules, api::name(binding));
}

}  // namespace

Result<void> check_escalation(const Policy& policy, const WriteRequest& request,
                              const json::value& object, const json::value* old) {
  const api::Resource& resource = request.kind->resource();
  if (resource.group != kRbacGroup || request.user.member_of(kMasters)) return {};
  if (old != nullptr && only_ownership_changes(object, *old)) return {};
  if (resource.plural == "roles" || resource.plural == "clusterroles") {
    return check_role(policy, request, object, old);
  }
  if (resource.plural == "rolebindings" || resource.plural == "clusterrolebindings") {
    return check_binding(policy, request, object);
  }
  return {};
}

}  // namespace skiff::apiserver
