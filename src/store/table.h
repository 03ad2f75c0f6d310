// The objects and the recent events of one resource. Not thread-safe: the store's lock guards it.
#pragma once

#include <deque>
#include <set>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace skiff::store {

class Table {
 public:
  // History is complete after `start`.
  explicit Table(Revision start) : start_(start) {}

  EntryPtr find(std::string_view ns, std::string_view name) const;
  // Appends in order; all namespaces where `ns` is empty.
  void list(std::string_view ns, std::vector<EntryPtr>& out) const;
  std::size_t size() const { return objects_.size(); }

  // An object that was there when the store opened. Quickest in order.
  void load(EntryPtr entry);
  // Events come in order of their revisions. What history lets go is appended to `dropped`, so
  // that the caller can free it after letting go of the lock.
  void apply(Event event, std::vector<Event>& dropped);

  // The first `max` with after < revision <= until.
  Result<std::vector<Event>> events(Revision after, Revision until, std::size_t max) const;

 private:
  struct Place {
    std::string_view ns;
    std::string_view name;
    auto operator<=>(const Place&) const = default;
  };
  // The keys live in the entries, so the index costs one pointer an object.
  struct ByPlace {
    using is_transparent = void;
    static Place place(const EntryPtr& e) { return {e->key().ns, e->key().name}; }
    bool operator()(const EntryPtr& a, const EntryPtr& b) const { return place(a) < place(b); }
    bool operator()(const EntryPtr& a, const Place& b) const { return place(a) < b; }
    bool operator()(const Place& a, const EntryPtr& b) const { return a < place(b); }
  };

  std::set<EntryPtr, ByPlace> objects_;
  std::deque<Event> history_;
  std::size_t history_bytes_ = 0;
  Revision start_;
};

}  // namespace skiff::store
