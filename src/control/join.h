// Which objects a root looks at without controlling them, kept up to date change by change.
//
// Both sides are indexed by their words (Related), so that a pod that changes costs the few
// services that may select it, and a service that is planned costs the few pods it may select.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/cache.h"
#include "control/controller.h"

namespace skiff::control {

class Join {
 public:
  explicit Join(Related related);

  // `before` is null for what appears, `after` for what is gone.
  void root_changed(const Object& before, const Object& after);
  void object_changed(const Object& before, const Object& after);

  // The roots that look at the object. It need not be known here.
  std::vector<Key> roots_of(const json::value& object) const;
  // What the root looks at, ordered by name.
  std::vector<Key> seen_by(const json::value& root) const;

 private:
  using Word = std::pair<std::string, std::string>;  // namespace, word

  // Where roots and objects meet: the namespace, or one place for all.
  std::string place(const json::value& object) const;

  Related related_;
  // A root stands under one of its words only: the one that the fewest others stand under.
  std::map<Word, std::map<Key, std::vector<std::string>>> roots_ = {};
  std::map<Key, Word> place_of_ = {};
  std::map<Word, std::set<Key>> objects_ = {};
};

}  // namespace skiff::control
