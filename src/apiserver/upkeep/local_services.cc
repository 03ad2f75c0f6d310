#include "apiserver/upkeep/local_services.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/meta.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kManaged = "kube-aggregator.kubernetes.io/automanaged";

// In which order clients see the groups of Kubernetes; those of others come last.
constexpr std::pair<std::string_view, int> kGroupPriorities[] = {
    {"", 18000},
    {"apps", 17800},
    {"events.k8s.io", 17750},
    {"authentication.k8s.io", 17700},
    {"authorization.k8s.io", 17600},
    {"autoscaling", 17500},
    {"batch", 17400},
    {"certificates.k8s.io", 17300},
    {"networking.k8s.io", 17200},
    {"policy", 17100},
    {"rbac.authorization.k8s.io", 17000},
    {"storage.k8s.io", 16800},
    {"apiextensions.k8s.io", 16700},
    {"admissionregistration.k8s.io", 16700},
    {"scheduling.k8s.io", 16600},
    {"coordination.k8s.io", 16500},
    {"node.k8s.io", 16300},
    {"discovery.k8s.io", 16200}};

struct Priority {
  int group = 1000;
  int version = 100;
  bool built_in = false;
};

Priority priority_of(const std::string& group, const std::string& version) {
  for (const auto& [name, number] : kGroupPriorities) {
    if (name != group) continue;
    return {number, group.empty() ? 1 : version == "v2" ? 30 : 15, true};
  }
  return {};
}

json::value service_of(const std::string& group, const std::string& version) {
  const Priority priority = priority_of(group, version);
  json::object spec{{"version", version},
                    {"groupPriorityMinimum", priority.group},
                    {"versionPriority", priority.version}};
  if (!group.empty()) spec["group"] = group;
  return json::object{
      {"metadata",
       {{"name", fmt::format("{}.{}", version, group)},
        {"labels", {{json::string(kManaged), priority.built_in ? "onstart" : "true"}}}}},
      {"spec", std::move(spec)}};
}

}  // namespace

LocalServicesPlan plan_local_services(const KindTable& kinds,
                                      const std::vector<store::EntryPtr>& existing) {
  std::map<std::string, std::pair<std::string, std::string>> wanted;  // group and version by name
  for (const KindTable::Group& group : kinds.groups()) {
    // This group is what the others are told in; the real server has no APIService of it either.
    if (group.name == "apiregistration.k8s.io") continue;
    for (const std::string& version : group.versions) {
      wanted[fmt::format("{}.{}", version, group.name)] = {group.name, version};
    }
  }
  LocalServicesPlan plan;
  for (const store::EntryPtr& entry : existing) {
    const std::string& name = entry->key().name;
    if (wanted.erase(name) > 0) continue;
    const Object service = entry->value();
    if (api::deleting(*service)) continue;
    if (!api::label(*service, kManaged).empty()) plan.remove.push_back(name);
  }
  for (const auto& [name, place] : wanted) {
    plan.create.push_back(service_of(place.first, place.second));
  }
  return plan;
}

LocalServices::LocalServices(store::Store& store, Writes& writes, Kinds kinds, Commit commit)
    : store_(store),
      writes_(writes),
      kinds_(std::move(kinds)),
      commit_(std::move(commit)),
      changes_(store, std::string(kApiServicesKey)) {}

bool LocalServices::pass() {
  const std::lock_guard guard(lock_);
  const auto kinds = kinds_();
  const ServedKind* kind = kinds->by_key(kApiServicesKey);
  if (kind == nullptr) return false;
  if (changes_.take().keys.empty() && seen_ == kinds) return false;
  seen_ = nullptr;  // until all is as it should be
  Transaction txn(store_);
  const LocalServicesPlan plan = plan_local_services(*kinds, store_.list(kApiServicesKey).entries);
  WriteRequest request{.kind = kind,
                       .validation = FieldValidation::kIgnore,
                       .user = {.user = "system:skiff", .groups = {std::string(kMasters)}},
                       .manager = "kube-apiserver"};
  for (const json::value& service : plan.create) {
    request.verb = Verb::kCreate;
    request.body = service;
    if (!writes_.run(txn, request)) return false;
  }
  for (const std::string& name : plan.remove) {
    request.verb = Verb::kDelete;
    request.name = name;
    request.body = nullptr;
    if (!writes_.run(txn, request)) return false;
  }
  if (txn.changes() && !commit_(txn, store::Sync::kLazy)) return false;
  seen_ = kinds;
  return txn.changes();
}

}  // namespace skiff::apiserver
