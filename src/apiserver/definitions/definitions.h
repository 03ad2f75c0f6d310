// What the server knows of CustomResourceDefinitions: the kinds that each one adds and the names
// that it holds. Each state of a definition is read once, so that a change of one costs nothing for
// the others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds.h"
#include "apiserver/transaction.h"
#include "base/json.h"
#include "store/store.h"

namespace skiff::apiserver {

// Names that no other definition of the same group can have.
struct HeldNames {
  std::set<std::string> resources = {};  // plurals, singulars and short names
  std::set<std::string> kinds = {};      // with those of lists

  void add(const HeldNames& other);
};

// One state of one definition. It never changes.
struct Definition {
  std::string name = {};
  store::Revision revision = 0;  // 0: not committed yet
  std::string group = {};
  HeldNames held = {};
  bool names_accepted = false;
  std::vector<ServedKindPtr> served = {};  // one for each version; none before it is established
};

Definition read_definition(const json::value& object);

// Thread-safe. It remembers the newest state of each definition that somebody asked for.
class Definitions {
 public:
  // The definitions in the store now, by their names.
  std::vector<DefinitionPtr> all(const store::Store& store);
  // The names that are taken in a group, as the transaction sees it.
  HeldNames taken(const Transaction& txn, std::string_view group);
  HeldNames taken(const store::Store& store, std::string_view group);

  // How many times a definition was read since the start.
  std::uint64_t reads() const;

 private:
  DefinitionPtr known(const store::EntryPtr& entry);
  void forget_others(const std::vector<DefinitionPtr>& present);

  mutable std::mutex lock_;
  std::map<std::string, DefinitionPtr, std::less<>> known_;  // by name
  std::uint64_t reads_ = 0;
};

}  // namespace skiff::apiserver
