#include "apiserver/admission/quota_keeper.h"

#include <chrono>

#include "apiserver/admission/quota_usage.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kQuotas = "resourcequotas";
constexpr std::size_t kQuotaEventsAtOnce = 4096;
constexpr Duration kYoung = std::chrono::seconds(10);
// As often as the real controller: for pods that should have stopped and did not.
constexpr Duration kFullCount = std::chrono::minutes(5);

bool differs(const json::value& quota) {
  return read_amounts(json::get_object(quota, {"spec", "hard"})) !=
         read_amounts(json::get_object(quota, {"status", "hard"}));
}

// Uses less of something than before.
bool shrank(const std::string& resource, const store::Event& event, Time now) {
  if (resource != "pods" && resource != "services" && resource != "persistentvolumeclaims") {
    return false;
  }
  const Amounts after = quota::usage(resource, *event.entry->value(), now);
  for (const auto& [name, quantity] : quota::usage(resource, *event.previous->value(), now)) {
    const auto at = after.find(name);
    if (at == after.end() || at->second < quantity) return true;
  }
  return false;
}

}  // namespace

QuotaKeeper::QuotaKeeper(store::Store& store, const env::Clock& clock, Counted counted,
                         Commit commit)
    : store_(store), clock_(clock), counted_(std::move(counted)), commit_(std::move(commit)) {}

bool QuotaKeeper::pass() {
  const std::lock_guard guard(lock_);
  quotas_.clear();
  for (const store::EntryPtr& entry : store_.list(kQuotas).entries) {
    quotas_[entry->key().ns].insert(entry->key());
  }
  if (quotas_.empty()) {
    seen_.clear();
    dirty_.clear();
    return false;
  }
  for (const std::string& resource : store_.resources()) seen_.try_emplace(resource, 0);
  std::vector<std::string> resources;
  for (const auto& [resource, revision] : seen_) resources.push_back(resource);
  for (const std::string& resource : resources) follow(resource);
  if (clock_.now() >= next_full_) {
    next_full_ = clock_.now() + kFullCount;
    for (const auto& [ns, keys] : quotas_) dirty_.insert(ns);
  }
  bool did = false;
  for (const std::string& ns : std::exchange(dirty_, {})) {
    const auto found = quotas_.find(ns);
    if (found == quotas_.end()) continue;
    for (const store::Key& quota : found->second) did = recount(quota) || did;
  }
  return did;
}

void QuotaKeeper::follow(const std::string& resource) {
  store::Revision& at = seen_[resource];
  const auto start_over = [&] {
    at = store_.revision();
    for (const auto& [ns, keys] : quotas_) dirty_.insert(ns);
  };
  if (at == 0) return start_over();
  while (true) {
    const auto events = store_.events(resource, at, store::Horizon::kCommitted, kQuotaEventsAtOnce);
    if (!events) return start_over();
    if (events->empty()) return;
    for (const store::Event& event : *events) {
      at = event.entry->revision();
      see(event);
    }
  }
}

void QuotaKeeper::see(const store::Event& event) {
  const store::Key& key = event.entry->key();
  if (!quotas_.contains(key.ns)) return;
  if (key.resource == kQuotas && event.type != store::EventType::kDeleted &&
      differs(*event.entry->value())) {
    young_[key.ns] = clock_.now() + kYoung;
    dirty_.insert(key.ns);
  }
  if (event.type == store::EventType::kDeleted ||
      (event.type == store::EventType::kModified && shrank(key.resource, event, clock_.now()))) {
    dirty_.insert(key.ns);
  }
  if (event.type == store::EventType::kAdded) {
    const auto young = young_.find(key.ns);
    if (young == young_.end()) return;
    if (clock_.now() > young->second) {
      young_.erase(young);
    } else {
      dirty_.insert(key.ns);
    }
  }
}

bool QuotaKeeper::recount(const store::Key& key) {
  Transaction txn(store_);
  // First the quota, then what it counts: whatever is charged in between makes the commit fail.
  const Object quota = txn.get(key);
  if (quota == nullptr) return false;
  const json::object& hard_text = json::get_object(*quota, {"spec", "hard"});
  const Amounts hard = read_amounts(hard_text);
  std::set<std::string> resources;
  Amounts used;
  for (const auto& [name, quantity] : hard) {
    for (const std::string& resource : quota::resources_for(name)) {
      if (!counted_(resource)) continue;
      resources.insert(resource);
      used.emplace(name, Quantity());
    }
  }
  for (const std::string& resource : resources) {
    for (const store::EntryPtr& entry : store_.list(resource, key.ns).entries) {
      const Object object = entry->value();
      if (!quota::in_scope(*quota, resource, *object)) continue;
      for (const auto& [name, quantity] : quota::usage(resource, *object, clock_.now())) {
        if (const auto at = used.find(name); at != used.end()) at->second += quantity;
      }
    }
  }
  if (!differs(*quota) && read_amounts(json::get_object(*quota, {"status", "used"})) == used) {
    return false;
  }
  json::value next = *quota;
  json::object& status = json::make_object(next, {"status"});
  status["hard"] = hard_text;
  status["used"] = write_amounts(used);
  txn.put(key, std::move(next));
  if (commit_(txn, store::Sync::kLazy)) return true;
  dirty_.insert(key.ns);
  return false;
}

}  // namespace skiff::apiserver
