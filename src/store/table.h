// The objects and the recent events of one resource. Not thread-safe: the store's lock guards it.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace skiff::store {

// A few hundred changes of a pod. Whoever comes back later than that lists again.
inline constexpr std::size_t kOldHistoryBytes = 2 * 1024 * 1024;

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
  // Of history up to `until` only the newest kOldHistoryBytes stay.
  void forget(Revision until, std::vector<Event>& dropped);

  // About `max` states up to `until` that have not been taken yet: what is in history, and objects
  // that were loaded or left history before they were taken.
  std::vector<EntryPtr> take_cold(Revision until, std::size_t max);
  // Every object that is not packed is to be taken once more.
  void pack_again();

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

  void drop_oldest(std::vector<Event>& dropped);
  void miss(Revision revision);
  void walk(Revision until, std::size_t max, std::vector<EntryPtr>& out);

  std::set<EntryPtr, ByPlace> objects_;
  std::deque<Event> history_;
  std::size_t history_bytes_ = 0;  // of states that only history has
  Revision start_;
  Revision swept_ = 0;  // history up to here has been taken
  // Between these are objects that history will not tell of; 0: there are none.
  Revision missed_from_ = 0;
  Revision missed_to_ = 0;
  std::optional<Key> walk_ = {};  // how far a walk along all objects has come
};

}  // namespace skiff::store
