// Placement: which waiting pod goes where, and why the others wait. Pure.
//
// Pods are placed by priority, then age. The unit is the gang (a pod alone is a gang of one): it is
// tried on a copy of the free amounts and placed whole or not at all, so two gangs never hold parts
// that the other needs. A gang that does not fit lets later and smaller ones pass; when it has
// waited for long, room is held for it (kPatience).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/snapshot.h"

namespace skiff::scheduler {

struct Binding {
  PodPtr pod = {};
  std::string node = {};
};

struct Waiting {
  PodPtr pod = {};
  std::string message = {};  // 0/1 nodes are available: 1 Insufficient cpu (asks 8, free 1.5 of 2)
  bool incomplete = false;   // members of its gang are missing: most likely still being made
};

struct Placement {
  std::vector<Binding> bindings = {};
  // Members placed earlier without which the gang would be short of its minimum: the bindings are
  // right only while these are as they were seen.
  std::vector<MemberPtr> counted = {};
};

// A claim whose volume is to be made for this node, before its pod can be bound to it.
struct Selection {
  Object claim = {};
  std::string node = {};
};

struct Decisions {
  std::vector<Placement> gangs = {};  // each to be bound as one
  std::vector<Selection> selections = {};
  std::vector<Waiting> waiting = {};  // in the order in which they are tried
  // Set where room is held: when it is no longer.
  std::optional<Duration> look_again_after = {};
};

// The first that waits longer than this and would fit, once those pods have ended that end by
// themselves, gets room held: nobody behind it takes what it needs on the nodes it would fill. That
// lasts for kHold, so that one pod that never ends does not keep all others away, too; then the
// others may pass again for as long as before.
inline constexpr Duration kPatience = std::chrono::minutes(5);
inline constexpr Duration kHold = std::chrono::minutes(30);

Decisions schedule(const Snapshot& snapshot, Time now);

}  // namespace skiff::scheduler
