// The state of the store as one transaction sees it: what it has staged, over what it has read.
// Committing succeeds only if everything it changes, and what it says it depends on, is still as it
// was read.
#pragma once

#include <map>
#include <string>
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
  // The objects of one namespace (empty: all of them, or a cluster-scoped resource), by their
  // names, with what is staged. A commit does not notice what others add to them meanwhile.
  std::vector<Object> list(std::string_view resource, std::string_view ns) const;
  // The same without reading the objects: an entry of the store, or what is staged over it.
  struct Listed {
    store::EntryPtr entry = {};  // null where the object is staged
    Object staged = {};
  };
  std::vector<Listed> entries(std::string_view resource, std::string_view ns) const;
  // The object, or its absence, must be at commit as it was read.
  void require(const store::Key& key);
  void put(const store::Key& key, json::value object);
  void remove(const store::Key& key);
  bool changes() const;
  // What it removes of a resource, as it was read.
  std::vector<Object> removals(std::string_view resource) const;
  // Whether it changes an object of that resource.
  bool touched(std::string_view resource) const;

  // kConflict, kAlreadyExists or kNotFound mean that somebody else was quicker: try again anew.
  Result<store::Revision> commit(store::Sync sync);
  // After commit: the object as written, or as it was read where nothing was written; null where it
  // is gone.
  store::EntryPtr result(const store::Key& key) const;
  // After commit, of a removed object: its last state at the revision of its removal.
  store::EntryPtr removed(const store::Key& key) const;

  // What the client is told besides the answer, be that good or bad.
  std::vector<std::string> warnings = {};

 private:
  // Several writes of one object in a transaction become one: nobody saw the states between.
  struct Slot {
    store::EntryPtr base = {};
    Object current = {};
    std::size_t order = 0;  // 0: not staged
    bool required = false;
    store::EntryPtr committed = {};
  };
  Slot& slot(const store::Key& key);

  store::Store& store_;
  std::map<store::Key, Slot> slots_;
  std::size_t staged_ = 0;
};

}  // namespace skiff::apiserver
