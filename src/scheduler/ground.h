// The nodes that a plan was made for, to tell when it comes back whether they still take it.
//
// Pods that changed meanwhile refuse their binding by themselves (its preconditions); a node does
// not: it may be cordoned, gone or filled by others while a plan is under way.
#pragma once

#include <map>
#include <set>
#include <string>

#include "scheduler/snapshot.h"

namespace skiff::scheduler {

class Ground {
 public:
  explicit Ground(const Snapshot& then) : nodes_(then.nodes), used_(then.used) {}

  // The nodes of then that may not be as they were. Of the others nothing need be asked.
  std::set<std::string, std::less<>> moved(const Snapshot& now) const;
  // Whether a node takes the pod still: it is there, nothing is in the pod's way, and of what the
  // pod asks for no less is free than the plan counted on.
  bool takes(const Snapshot& now, const Pod& pod, const std::string& node) const;

 private:
  std::map<std::string, NodePtr> nodes_ = {};
  std::map<std::string, Amounts> used_ = {};
};

}  // namespace skiff::scheduler
