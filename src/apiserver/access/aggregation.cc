#include "apiserver/access/aggregation.h"

#include <algorithm>
#include <unordered_set>

#include "api/meta.h"
#include "base/limits.h"
#include "base/selectors.h"

namespace skiff::apiserver {
namespace {

struct Role {
  const json::value* object = nullptr;
  std::vector<Rule> rules = {};
  std::vector<LabelSelector> selectors = {};
  bool gathers = false;
};

struct HashRule {
  std::size_t operator()(const Rule* rule) const {
    std::size_t out = 0;
    for (const auto* list :
         {&rule->verbs, &rule->groups, &rule->resources, &rule->names, &rule->urls}) {
      for (const std::string& word : *list) out = out * 31 + std::hash<std::string>()(word);
      out = out * 31 + list->size();
    }
    return out;
  }
};
struct SameRule {
  bool operator()(const Rule* a, const Rule* b) const { return *a == *b; }
};
using RuleSet = std::unordered_set<const Rule*, HashRule, SameRule>;

// Rules of other roles, each once. Those that would make the role larger than any that can be
// written are left out: it gives less then, never more.
std::vector<const Rule*> gather(const Role& role, const std::map<std::string, Role>& roles) {
  std::vector<const Rule*> out;
  RuleSet seen;
  std::size_t bytes = 0;
  for (const LabelSelector& selector : role.selectors) {
    for (const auto& [name, other] : roles) {
      if (other.object == role.object || !selector.matches_object(*other.object)) continue;
      for (const Rule& rule : other.rules) {
        if (seen.contains(&rule)) continue;
        bytes += json_bytes(rule);
        if (bytes > limits::kRequestBodyBytes) return out;
        seen.insert(&rule);
        out.push_back(&rule);
      }
    }
  }
  return out;
}

// In whatever order: roles that gather each other might else swap theirs for ever.
bool same_rules(const std::vector<const Rule*>& gathered, const std::vector<Rule>& have) {
  if (gathered.size() != have.size()) return false;
  RuleSet known;
  for (const Rule& rule : have) known.insert(&rule);
  return known.size() == gathered.size() &&
         std::ranges::all_of(gathered, [&](const Rule* rule) { return known.contains(rule); });
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
      const std::vector<const Rule*> gathered = gather(role, roles);
      if (same_rules(gathered, role.rules)) continue;
      std::vector<Rule> rules;
      for (const Rule* rule : gathered) rules.push_back(*rule);
      role.rules = rules;
      out[name] = std::move(rules);
      changed = true;
    }
    if (!changed) break;
  }
  return out;
}

}  // namespace skiff::apiserver
