// The collector's index: how it follows the store.
#include <algorithm>

#include "api/meta.h"
#include "apiserver/upkeep/garbage.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kEventsAtOnce = 4096;
constexpr Duration kEventLife = std::chrono::hours(1);

// An event lives for an hour after it was last seen.
// An hour after the last sign of life. What the client says of the past does not shorten it.
Time expiry_of(const json::value& event) {
  Time last = Time::min();
  for (const auto& path : {std::initializer_list<std::string_view>{"series", "lastObservedTime"},
                           {"lastTimestamp"},
                           {"eventTime"},
                           {"metadata", "creationTimestamp"}}) {
    if (const auto time = api::time_at(event, path)) last = std::max(last, *time);
  }
  return last == Time::min() ? Time::max() : last + kEventLife;
}

std::string group_of(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return std::string(slash == std::string_view::npos ? "" : api_version.substr(0, slash));
}

}  // namespace

void Collector::refresh() {
  for (const std::string& resource : store_.resources()) seen_.try_emplace(resource, 0);
  std::vector<std::string> resources;
  for (const auto& [resource, revision] : seen_) resources.push_back(resource);
  for (const std::string& resource : resources) refresh(resource);
}

void Collector::refresh(const std::string& resource) {
  store::Revision& at = seen_[resource];
  if (at == 0) return rescan(resource);
  while (true) {
    const auto events = store_.events(resource, at, store::Horizon::kCommitted, kEventsAtOnce);
    if (!events) return rescan(resource);
    if (events->empty()) return;
    for (const store::Event& event : *events) {
      at = event.entry->revision();
      if (event.type == store::EventType::kDeleted) {
        erase(event.entry->key());
      } else {
        upsert(*event.entry);
      }
    }
  }
}

void Collector::rescan(const std::string& resource) {
  const store::Listing listing = store_.list(resource);
  std::set<store::Key> present;
  for (const store::EntryPtr& entry : listing.entries) present.insert(entry->key());
  for (const store::Key& key : objects_of(resource, nullptr)) {
    if (!present.contains(key)) erase(key);
  }
  for (const store::EntryPtr& entry : listing.entries) upsert(*entry);
  seen_[resource] = listing.revision;
}

void Collector::upsert(const store::Entry& entry) {
  const store::Key& key = entry.key();
  const Object object = entry.value();
  Node node{.uid = std::string(api::uid(*object)),
            .finalizers = json::strings(json::get_array(*object, {"metadata", "finalizers"})),
            .deleting = api::deleting(*object)};
  for (const json::value& owner : json::get_array(*object, {"metadata", "ownerReferences"})) {
    node.owners.push_back(
        {.uid = std::string(json::get_string(owner, {"uid"})),
         .group = group_of(json::get_string(owner, {"apiVersion"})),
         .kind = std::string(json::get_string(owner, {"kind"})),
         .blocks = json::get_bool(owner, {"blockOwnerDeletion"}).value_or(false)});
  }
  if (key.resource == "events" || key.resource == "events.events.k8s.io") {
    node.expires = expiry_of(*object);
  }
  // The same name may carry another object now: the one before is gone.
  const auto before = nodes_.find(key);
  if (before != nodes_.end()) {
    if (before->second.uid != node.uid) {
      erase(key);
    } else {
      expiries_.erase({before->second.expires, key});
      count_out(key, before->second);
      for (const Owner& old : before->second.owners) {
        forget_dependent(key, old);
        const auto kept = std::ranges::find(node.owners, old.uid, &Owner::uid);
        if (kept != node.owners.end()) kept->gone = old.gone;
        // An owner that waits for this object in its foreground deletion need wait no more.
        const auto at = by_uid_.find(old.uid);
        if (old.blocks && (kept == node.owners.end() || !kept->blocks) && at != by_uid_.end()) {
          dirty_.insert(at->second);
        }
      }
    }
  }
  by_uid_[node.uid] = key;
  for (const Owner& owner : node.owners) dependents_[owner.uid].insert(key);
  if (node.expires != Time::max()) expiries_.insert({node.expires, key});
  count_in(key, node);
  nodes_[key] = std::move(node);
  dirty_.insert(key);
}

void Collector::erase(const store::Key& key) {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) return;
  const Node node = std::move(found->second);
  nodes_.erase(found);
  count_out(key, node);
  by_uid_.erase(node.uid);
  expiries_.erase({node.expires, key});
  for (const Owner& owner : node.owners) forget_dependent(key, owner);
  for (const store::Key& child : dependents(node.uid)) {
    for (Owner& owner : nodes_.at(child).owners) {
      if (owner.uid == node.uid) owner.gone = true;
    }
    dirty_.insert(child);
  }
  touch_holders(key, node);
}

void Collector::forget_dependent(const store::Key& key, const Owner& owner) {
  const auto found = dependents_.find(owner.uid);
  if (found == dependents_.end()) return;
  found->second.erase(key);
  if (found->second.empty()) dependents_.erase(found);
}

}  // namespace skiff::apiserver
