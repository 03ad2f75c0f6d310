#include "apiserver/transaction.h"

#include <algorithm>

#include "base/check.h"

namespace skiff::apiserver {

Transaction::Slot& Transaction::slot(const store::Key& key) {
  const auto [at, fresh] = slots_.try_emplace(key);
  if (fresh) {
    at->second.base = store_.get(key);
    if (at->second.base) at->second.current = at->second.base->value();
  }
  return at->second;
}

Object Transaction::get(const store::Key& key) { return slot(key).current; }

std::vector<Transaction::Listed> Transaction::entries(std::string_view resource,
                                                      std::string_view ns) const {
  std::map<store::Key, Listed> found;
  for (const store::EntryPtr& entry : store_.list(resource, ns).entries) {
    found[entry->key()] = {.entry = entry};
  }
  // Each object of a large transaction asks for limits and quotas: only their part is walked.
  const store::Key first{.resource = std::string(resource), .ns = std::string(ns)};
  for (auto at = slots_.lower_bound(first); at != slots_.end(); ++at) {
    const auto& [key, slot] = *at;
    if (key.resource != resource || (!ns.empty() && key.ns != ns)) break;
    if (slot.order > 0) found[key] = {.staged = slot.current};
  }
  std::vector<Listed> out;
  for (auto& [key, one] : found) {
    if (one.entry != nullptr || one.staged != nullptr) out.push_back(std::move(one));
  }
  return out;
}

std::vector<Object> Transaction::list(std::string_view resource, std::string_view ns) const {
  std::vector<Object> out;
  for (Listed& one : entries(resource, ns)) {
    out.push_back(one.entry != nullptr ? one.entry->value() : std::move(one.staged));
  }
  return out;
}

void Transaction::require(const store::Key& key) { slot(key).required = true; }

std::vector<Object> Transaction::removals(std::string_view resource) const {
  std::vector<Object> out;
  for (const auto& [key, slot] : slots_) {
    if (slot.order > 0 && key.resource == resource && slot.current == nullptr && slot.base) {
      out.push_back(slot.base->value());
    }
  }
  return out;
}

void Transaction::put(const store::Key& key, json::value object) {
  Slot& at = slot(key);
  at.current = std::make_shared<const json::value>(std::move(object));
  if (at.order == 0) at.order = ++staged_;
}

void Transaction::remove(const store::Key& key) {
  Slot& at = slot(key);
  SKIFF_CHECK(at.current != nullptr, "an object to remove must exist");
  at.current = nullptr;
  if (at.order == 0) at.order = ++staged_;
}

bool Transaction::changes() const { return staged_ > 0; }

bool Transaction::touched(std::string_view resource) const {
  return std::ranges::any_of(slots_, [&](const auto& slot) {
    return slot.second.order > 0 && slot.first.resource == resource;
  });
}

Result<store::Revision> Transaction::commit(store::Sync sync) {
  std::vector<std::pair<const store::Key*, Slot*>> order;
  std::vector<store::Check> checks;
  for (auto& [key, slot] : slots_) {
    if (slot.required && slot.order == 0) {
      checks.push_back({.key = key, .expected = slot.base ? slot.base->revision() : 0});
    }
    const bool came_and_went = slot.base == nullptr && slot.current == nullptr;
    if (slot.order > 0 && !came_and_went) order.emplace_back(&key, &slot);
  }
  if (order.empty() && checks.empty()) return store_.revision();
  std::ranges::sort(order, {}, [](const auto& pair) { return pair.second->order; });
  std::vector<store::Mutation> mutations;
  mutations.reserve(order.size());
  for (const auto& [key, slot] : order) {
    store::Mutation mutation{.key = *key, .expected = slot->base ? slot->base->revision() : 0};
    if (slot->current) mutation.value = *slot->current;
    mutations.push_back(std::move(mutation));
  }
  SKIFF_ASSIGN(store::Committed committed, store_.commit(std::move(mutations), sync, checks));
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i].second->committed = committed.entries[i];
  }
  return committed.revision;
}

store::EntryPtr Transaction::result(const store::Key& key) const {
  const auto at = slots_.find(key);
  if (at == slots_.end() || !at->second.current) return nullptr;
  return at->second.order > 0 ? at->second.committed : at->second.base;
}

store::EntryPtr Transaction::removed(const store::Key& key) const {
  const auto at = slots_.find(key);
  return at == slots_.end() || at->second.current ? nullptr : at->second.committed;
}

}  // namespace skiff::apiserver
