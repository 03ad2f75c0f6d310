#include "apiserver/upkeep/garbage.h"

#include <algorithm>

#include "api/meta.h"
#include "apiserver/apply/tracking.h"
#include "base/guarded.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

bool has_finalizer(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

store::Key namespace_key(const std::string& name) {
  return {.resource = "namespaces", .name = name};
}

// Whether the object is there and names that owner.
bool names_owner(const store::EntryPtr& entry, std::string_view uid) {
  if (entry == nullptr) return false;
  const Object object = entry->value();
  return std::ranges::any_of(
      json::get_array(*object, {"metadata", "ownerReferences"}),
      [&](const json::value& owner) { return json::get_string(owner, {"uid"}) == uid; });
}

store::Key definition_key(const std::string& resource) {
  return {.resource = std::string(kCrdKey), .name = resource};
}

}  // namespace

Collector::Collector(store::Store& store, const env::Clock& clock, Writes& writes, Kinds kinds,
                     Commit commit)
    : store_(store),
      clock_(clock),
      writes_(writes),
      kinds_(std::move(kinds)),
      commit_(std::move(commit)) {}

bool Collector::pass() {
  const std::lock_guard guard(lock_);
  refresh();
  bool did = expire_events();
  std::set<store::Key> due = std::exchange(dirty_, {});
  for (const store::Key& key : due) {
    // What it throws about is left as it is until it changes: nobody here keeps a log, and the
    // others must go on.
    const auto stepped = guarded([&] { return nodes_.contains(key) && step(key); });
    if (stepped.value_or(false)) did = true;
  }
  return did;
}

bool Collector::step(const store::Key& key) {
  const Node node = nodes_.at(key);
  if (node.deleting) {
    // A namespace has nothing that depends on it but what is in it.
    if (key.resource == "namespaces" && !has_finalizer(node.finalizers, kForeground) &&
        !has_finalizer(node.finalizers, kOrphan)) {
      return empty_namespace(key);
    }
    if (has_finalizer(node.finalizers, kForeground)) return finish_foreground(key, node);
    if (has_finalizer(node.finalizers, kOrphan)) return finish_orphan(key, node);
    if (has_finalizer(node.finalizers, kCrdFinalizer)) return empty_definition(key);
    if (key.resource.starts_with("persistentvolume")) return release_storage(key);
    return false;
  }
  // An object that was created while its namespace was going.
  if (!key.ns.empty() && !nodes_.contains(namespace_key(key.ns))) {
    refresh();
    if (!nodes_.contains(namespace_key(key.ns))) return remove(key, node.uid, "Background");
  }
  return !node.owners.empty() && judge_owners(key);
}

bool Collector::expire_events() {
  bool did = false;
  const Time now = clock_.now();
  std::vector<Expiry> again;  // the disk refused, or somebody was quicker
  for (; !expiries_.empty() && expiries_.top().at <= now; expiries_.pop()) {
    const store::EntryPtr event = expiries_.top().event.lock();
    // One that was seen again lives on, in another entry.
    if (event == nullptr || store_.get(event->key()) != event) continue;
    const auto removed = guarded(
        [&] { return remove(event->key(), std::string(api::uid(*event->value())), "Background"); });
    if (!removed) continue;  // a bug about this one; it stays, the others need not
    if (*removed) {
      did = true;
    } else {
      again.push_back(expiries_.top());
    }
  }
  for (Expiry& expiry : again) expiries_.push(std::move(expiry));
  return did;
}

bool Collector::owner_lives(const store::Key& key, const Owner& owner) const {
  const auto found = by_uid_.find(owner.uid);
  if (found == by_uid_.end()) {
    // Whether an owner of a kind that nobody serves here exists, somebody else must know: its
    // dependents are not ours to remove.
    return !owner.gone && std::ranges::none_of(kinds_()->all(), [&](const auto& kind) {
      return kind->resource().group == *owner.group && kind->resource().kind == *owner.kind;
    });
  }
  // An owner in another namespace is none.
  return found->second->ns.empty() || found->second->ns == key.ns;
}

bool Collector::judge_owners(const store::Key& key) {
  const auto absent = [&] {
    std::set<std::string> uids;
    const auto node = nodes_.find(key);
    if (node == nodes_.end()) return uids;
    for (const Owner& owner : node->second.owners) {
      if (!owner_lives(key, owner)) uids.insert(owner.uid);
    }
    return uids;
  };
  if (absent().empty()) return false;
  // The owner's resource may have been read before the owner was made; it exists since before its
  // dependent, so a second look decides.
  refresh();
  const std::set<std::string> uids = absent();
  if (uids.empty()) return false;
  const Node node = nodes_.at(key);
  const bool all =
      std::ranges::none_of(node.owners, [&](const Owner& o) { return owner_lives(key, o); });
  return all ? remove(key, node.uid, "Background", node.revision) : strip_owners(key, uids);
}

bool Collector::finish_foreground(const store::Key& key, const Node& node) {
  bool did = false, waiting = false, failed = false;
  for (const store::Key& child : dependents(node.uid)) {
    const Node& dependent = nodes_.at(child);
    const auto owner = std::ranges::find(dependent.owners, node.uid, &Owner::uid);
    // In a circle nobody waits for who waits for him.
    if (owner->blocks && !(dependent.deleting && leads_to(dependent.uid, node.uid))) waiting = true;
    const bool shared = std::ranges::any_of(dependent.owners, [&](const Owner& other) {
      return other.uid != node.uid && owner_lives(child, other);
    });
    if (shared) {
      (strip_owners(child, {node.uid}) ? did : failed) = true;
    } else if (!dependent.deleting) {
      const std::string_view how = dependents(dependent.uid).empty() ? "Background" : "Foreground";
      (remove(child, dependent.uid, how, dependent.revision) ? did : failed) = true;
    }
  }
  if (waiting) {
    // A child that somebody else was quicker with may look as before to the index: it wakes nobody.
    if (did || failed) dirty_.insert(key);
    return did;
  }
  return remove_finalizer(key, kForeground) || did;
}

// Whether `to` is among what depends on `from`, at any depth.
bool Collector::leads_to(const std::string& from, const std::string& to) const {
  std::set<std::string> seen = {from};
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const std::string uid = std::move(open.back());
    open.pop_back();
    for (const store::Key& child : dependents(uid)) {
      const std::string& next = nodes_.at(child).uid;
      if (next == to) return true;
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return false;
}

bool Collector::finish_orphan(const store::Key& key, const Node& node) {
  // A child that is newer than the last look, or that somebody else was quicker with, would be
  // collected once its owner has gone.
  refresh();
  const auto now = nodes_.find(key);
  if (now == nodes_.end() || now->second.uid != node.uid) return false;
  bool did = false, left = false;
  for (const store::Key& child : dependents(node.uid)) {
    if (strip_owners(child, {node.uid})) {
      did = true;
    } else if (names_owner(store_.get(child), node.uid)) {
      left = true;
    }
  }
  if (left) {
    dirty_.insert(key);
    return did;
  }
  return remove_finalizer(key, kOrphan) || did;
}

void Collector::retry_names() {
  Definitions& definitions = writes_.definitions();
  for (const DefinitionPtr& waiting : definitions.all(store_)) {
    if (waiting->names_accepted) continue;
    // Asked for each of them: the one before may have taken the name that both wait for.
    const HeldNames taken = definitions.taken(store_, waiting->group);
    write(
        {.resource = std::string(kCrdKey), .name = waiting->name},
        [&](json::value& object) { accept_names(object, taken, rfc3339(clock_.now())); }, "status");
  }
}

std::vector<store::Key> Collector::dependents(const std::string& uid) const {
  static const store::Key kFirst;
  std::vector<store::Key> keys;
  auto at = dependents_.lower_bound({.owner = uid, .child = &kFirst});
  for (; at != dependents_.end() && at->owner == uid; ++at) keys.push_back(*at->child);
  return keys;
}

std::vector<store::Key> Collector::objects_of(const std::string& resource,
                                              const std::string* ns) const {
  std::vector<store::Key> keys;
  auto at = nodes_.lower_bound({.resource = resource, .ns = ns == nullptr ? "" : *ns});
  for (; at != nodes_.end() && at->first.resource == resource; ++at) {
    if (ns != nullptr && at->first.ns != *ns) break;
    keys.push_back(at->first);
  }
  return keys;
}

bool Collector::remove(const store::Key& key, const std::string& uid, std::string_view propagation,
                       store::Revision seen) {
  const auto kinds = kinds_();
  const ServedKind* kind = kinds->by_key(key.resource);
  Transaction txn(store_);
  if (kind == nullptr) {
    if (txn.get(key) == nullptr) return false;
    txn.remove(key);
  } else {
    const auto outcome =
        writes_.run(txn, {.verb = Verb::kDelete,
                          .kind = kind,
                          .ns = key.ns,
                          .name = key.name,
                          .remove = {.propagation = std::string(propagation)},
                          .uid = uid,
                          .resource_version = seen == 0 ? "" : std::to_string(seen)});
    // It has changed since it was looked at.
    if (!outcome && outcome.error().code == Code::kConflict) dirty_.insert(key);
    if (!outcome || !txn.changes()) return false;
  }
  const bool lazy = kind != nullptr && kind->kind.lazy;
  if (commit_(txn, lazy ? store::Sync::kLazy : store::Sync::kSynced)) return true;
  dirty_.insert(key);  // somebody was quicker; look again
  return false;
}

void Collector::track(const ServedKind& kind, std::string_view subresource, const json::value& old,
                      json::value& next) const {
  take_managed(next);
  json::value written = next;
  writes_.gate().complete_view(kind, written);
  track_update(writes_.gate(),
               {.kind = kind,
                .subresource = std::string(subresource),
                .manager = "skiff",
                .now = rfc3339(clock_.now())},
               &old, nullptr, written);
  if (json::value managed = take_managed(written); !managed.is_null()) {
    json::make_object(next, {"metadata"})["managedFields"] = std::move(managed);
  }
}

bool Collector::write(const store::Key& key, const std::function<void(json::value&)>& change,
                      std::string_view subresource) {
  const auto kinds = kinds_();
  const ServedKind* kind = kinds->by_key(key.resource);
  Transaction txn(store_);
  const Object old = txn.get(key);
  if (old == nullptr) return false;
  json::value next = *old;
  change(next);
  if (next == *old) return false;
  if (kind != nullptr) track(*kind, subresource, *old, next);
  if (kind != nullptr && released(*kind, next)) {
    txn.remove(key);
  } else {
    txn.put(key, std::move(next));
  }
  if (commit_(txn, store::Sync::kSynced)) return true;
  dirty_.insert(key);
  return false;
}

bool Collector::strip_owners(const store::Key& key, const std::set<std::string>& uids) {
  return write(key, [&](json::value& object) {
    json::array rest;
    for (const json::value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
      if (!uids.contains(std::string(json::get_string(owner, {"uid"})))) rest.push_back(owner);
    }
    json::object& metadata = json::make_object(object, {"metadata"});
    if (rest.empty()) {
      metadata.erase("ownerReferences");
    } else {
      metadata["ownerReferences"] = std::move(rest);
    }
  });
}

bool Collector::remove_finalizer(const store::Key& key, std::string_view finalizer) {
  return write(key, [&](json::value& object) {
    json::array rest;
    for (const json::value& f : json::get_array(object, {"metadata", "finalizers"})) {
      if (f != json::value(json::string(finalizer))) rest.push_back(f);
    }
    json::object& metadata = json::make_object(object, {"metadata"});
    if (rest.empty()) {
      metadata.erase("finalizers");
    } else {
      metadata["finalizers"] = std::move(rest);
    }
  });
}

void Collector::touch_holders(const store::Key& key, const Node& node) {
  // Whoever waited for this object to go may go on: its owners, its namespace, its definition.
  for (const Owner& owner : node.owners) {
    if (const auto at = by_uid_.find(owner.uid); at != by_uid_.end()) dirty_.insert(*at->second);
  }
  dirty_.insert(namespace_key(key.ns));
  dirty_.insert(definition_key(key.resource));
  if (key.resource == "pods") dirty_.merge(std::exchange(used_claims_, {}));
}

}  // namespace skiff::apiserver
