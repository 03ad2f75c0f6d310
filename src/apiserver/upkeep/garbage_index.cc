// The collector's index: how it follows the store.
#include <algorithm>

#include "api/meta.h"
#include "apiserver/upkeep/garbage.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kIndexEventsAtOnce = 4096;
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

std::string owner_group(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return std::string(slash == std::string_view::npos ? "" : api_version.substr(0, slash));
}

// Those of events.k8s.io are another view of the same.
bool is_event(const store::Key& key) { return key.resource == "events"; }

}  // namespace

void Collector::refresh() {
  refresh("namespaces");  // first: whether an event is plain depends on its namespace
  for (const std::string& resource : store_.resources()) seen_.try_emplace(resource, 0);
  std::vector<std::string> resources;
  for (const auto& [resource, revision] : seen_) resources.push_back(resource);
  for (const std::string& resource : resources) refresh(resource);
}

void Collector::refresh(const std::string& resource) {
  store::Revision& at = seen_[resource];
  if (at == 0) return rescan(resource);
  while (true) {
    const auto events = store_.events(resource, at, store::Horizon::kCommitted, kIndexEventsAtOnce);
    if (!events) return rescan(resource);
    if (events->empty()) return;
    for (const store::Event& event : *events) {
      at = event.entry->revision();
      if (event.type == store::EventType::kDeleted) {
        erase(event.entry->key());
      } else {
        upsert(event.entry);
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
  for (const store::EntryPtr& entry : listing.entries) upsert(entry);
  if (resource == "events") {
    // Plain ones that have gone are in no index: whoever may have waited for them looks again.
    for (const store::Key& holder : objects_of("namespaces", nullptr)) {
      if (nodes_.at(holder).deleting) dirty_.insert(holder);
    }
  }
  seen_[resource] = listing.revision;
}

// Whether the two are the same to the collector. What is known of the owners is not compared.
bool Collector::alike(const Node& a, const Node& b) {
  return a.uid == b.uid && a.finalizers == b.finalizers && a.deleting == b.deleting &&
         std::ranges::equal(a.owners, b.owners, [](const Owner& x, const Owner& y) {
           return x.uid == y.uid && x.group == y.group && x.kind == y.kind && x.blocks == y.blocks;
         });
}

Collector::Node Collector::node_of(const json::value& object) {
  Node node{.uid = std::string(api::uid(object)),
            .finalizers = json::strings(json::get_array(object, {"metadata", "finalizers"})),
            .deleting = api::deleting(object)};
  const auto word = [&](std::string_view text) {
    const auto known = words_.find(text);
    return &*(known != words_.end() ? known : words_.emplace(text).first);
  };
  const json::array& owners = json::get_array(object, {"metadata", "ownerReferences"});
  node.owners.reserve(owners.size());
  for (const json::value& owner : owners) {
    node.owners.push_back(
        {.uid = std::string(json::get_string(owner, {"uid"})),
         .group = word(owner_group(json::get_string(owner, {"apiVersion"}))),
         .kind = word(json::get_string(owner, {"kind"})),
         .blocks = json::get_bool(owner, {"blockOwnerDeletion"}).value_or(false)});
  }
  return node;
}

// Nothing follows from it and nothing waits for it. It goes with its namespace, which finds it in
// the store.
bool Collector::is_plain(const store::Key& key, const Node& node) const {
  if (node.deleting || !node.owners.empty() || !node.finalizers.empty()) return false;
  const auto holder = nodes_.find({.resource = "namespaces", .name = key.ns});
  return holder != nodes_.end() && !holder->second.deleting && !nodes_.contains(key);
}

void Collector::upsert(const store::EntryPtr& entry) {
  const store::Key& key = entry->key();
  const Object object = entry->value();
  Node node = node_of(*object);
  node.revision = entry->revision();
  if (is_event(key)) {
    const Time expiry = expiry_of(*object);
    if (expiry != Time::max() && !node.deleting) {
      expiries_.push({.at = expiry, .revision = entry->revision(), .event = entry});
    }
    if (is_plain(key, node)) return;
  }
  const auto before = nodes_.find(key);
  // Most changes are of a status. One that is being deleted is looked at anew with each of them.
  if (before != nodes_.end() && !node.deleting && alike(before->second, node)) {
    before->second.revision = node.revision;
    const auto lives = [&](const Owner& owner) { return owner_lives(key, owner); };
    if (!std::ranges::all_of(before->second.owners, lives)) dirty_.insert(key);
    return;
  }
  dirty_.insert(key);
  if (before != nodes_.end() && before->second.uid == node.uid) {
    return change(before, std::move(node));
  }
  // The same name may carry another object now: the one before is gone.
  if (before != nodes_.end()) erase(key);
  link(nodes_.emplace(key, std::move(node)).first);
}

void Collector::change(Nodes::iterator at, Node node) {
  unlink(at);
  for (const Owner& old : at->second.owners) {
    const auto kept = std::ranges::find(node.owners, old.uid, &Owner::uid);
    if (kept != node.owners.end()) kept->gone = old.gone;
    // An owner that waits for this object in its foreground deletion need wait no more.
    const auto owner = by_uid_.find(old.uid);
    if (old.blocks && (kept == node.owners.end() || !kept->blocks) && owner != by_uid_.end()) {
      dirty_.insert(*owner->second);
    }
  }
  at->second = std::move(node);
  link(at);
}

void Collector::link(Nodes::iterator at) {
  auto& [key, node] = *at;
  // Of two objects with one uid the later counts. The old text may go before the new one does.
  by_uid_.erase(node.uid);
  by_uid_.emplace(node.uid, &key);
  for (const Owner& owner : node.owners) dependents_.insert({.owner = owner.uid, .child = &key});
  count_in(key, node);
}

// While the node is still whole: the other indexes point into it.
void Collector::unlink(Nodes::iterator at) {
  const auto& [key, node] = *at;
  count_out(key, node);
  by_uid_.erase(node.uid);
  for (const Owner& owner : node.owners) dependents_.erase({.owner = owner.uid, .child = &key});
}

void Collector::erase(const store::Key& key) {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) {
    // A plain event: its namespace may wait for it.
    dirty_.insert({.resource = "namespaces", .name = key.ns});
    return;
  }
  unlink(found);
  const Node node = std::move(found->second);
  nodes_.erase(found);
  for (const store::Key& child : dependents(node.uid)) {
    for (Owner& owner : nodes_.at(child).owners) {
      if (owner.uid == node.uid) owner.gone = true;
    }
    dirty_.insert(child);
  }
  touch_holders(key, node);
}

}  // namespace skiff::apiserver
