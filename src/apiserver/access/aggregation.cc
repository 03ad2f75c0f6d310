#include "apiserver/access/aggregation.h"

#include <algorithm>

#include "api/meta.h"
#include "base/selectors.h"

namespace skiff::apiserver {
namespace {

struct Role {
  const json::value* object = nullptr;
  std::vector<Rule> rules = {};
  std::vector<LabelSelector> selectors = {};
  bool gathers = false;
};

std::vector<Rule> gather(const Role& role, const std::map<std::string, Role>& roles) {
  std::vector<Rule> out;
  for (const LabelSelector& selector : role.selectors) {
    for (const auto& [name, other] : roles) {
      if (other.object == role.object || !selector.matches_object(*other.object)) continue;
      for (const Rule& rule : other.rules) {
        if (std::ranges::find(out, rule) == out.end()) out.push_back(rule);
      }
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::vector<Rule>> gathered_rules(const std::vector<Object>& objects) {
  std::map<std::string, Role> roles;
  for (const Object& object : objects) {
    Role role{.object = object.get(), .rules = rules_of(*object)};
    const json::value* rule = json::find(*object, {"aggregationRule"});
    role.gathers = rule != nullptr && rule->is_object();
    for (const json::value& selector :
         json::get_array(*object, {"aggregationRule", "clusterRoleSelectors"})) {
      if (auto read = LabelSelector::from_object(selector)) role.selectors.push_back(*read);
    }
    roles.emplace(api::name(*object), std::move(role));
  }
  std::map<std::string, std::vector<Rule>> out;
  // Each round carries rules one role further; more rounds than roles would mean that two of them
  // chase each other, which the next pass may go on with.
  for (std::size_t round = 0; round < roles.size(); ++round) {
    bool changed = false;
    for (auto& [name, role] : roles) {
      if (!role.gathers) continue;
      std::vector<Rule> rules = gather(role, roles);
      // In whatever order: roles that gather each other might else swap theirs for ever.
      if (std::ranges::is_permutation(rules, role.rules)) continue;
      role.rules = rules;
      out[name] = std::move(rules);
      changed = true;
    }
    if (!changed) break;
  }
  return out;
}

}  // namespace skiff::apiserver
