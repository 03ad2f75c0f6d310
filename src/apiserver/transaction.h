// The state of the store as one transaction sees it: what it has staged, over what it has read.
// Committing succeeds only if everything it changes is still as it was read.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "store/store.h"

namespace skiff::apiserver {

class Transaction {
 public:
  explicit Transaction(store::Store& store) : store_(store) {}

  // Null where absent.
  Object get(const store::Key& key);
  // All of a resource, as they are now and as they will be. What another writer adds meanwhile is
  // not seen and does not make the commit fail.
  std::vector<Object> all(std::string_view resource) const;
  void put(const store::Key& key, json::value object);
  void remove(const store::Key& key);
  bool changes() const;
  // Whether it changes an object of that resource.
  bool touched(std::string_view resource) const;

  // kConflict, kAlreadyExists or kNotFound mean that somebody else was quicker: try again anew.
  Result<store::Revision> commit(store::Sync sync);
  // After commit: the object as written, or as it was read where nothing was written; null where it
  // is gone.
  store::EntryPtr result(const store::Key& key) const;
  // After commit, of a removed object: its last state at the revision of its removal.
  store::EntryPtr removed(const store::Key& key) const;

 private:
  // Several writes of one object in a transaction become one: nobody saw the states between.
  struct Slot {
    store::EntryPtr base = {};
    Object current = {};
    std::size_t order = 0;  // 0: not staged
    store::EntryPtr committed = {};
  };
  Slot& slot(const store::Key& key);

  store::Store& store_;
  std::map<store::Key, Slot> slots_;
  std::size_t staged_ = 0;
};

}  // namespace skiff::apiserver
