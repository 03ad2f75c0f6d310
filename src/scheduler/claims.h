// What the claims of a pod say about where it may run, and whether it may run at all yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/snapshot.h"

namespace skiff::scheduler {

struct ClaimsView {
  std::optional<std::string> blocked = {};   // no node will do, in kube-scheduler's words
  bool coming = false;                       // their volumes are being made: nothing to tell yet
  std::vector<Object> unplaced = {};         // claims whose volume waits for a node to be chosen
  std::vector<Object> volumes = {};          // that must reach the node
  std::vector<control::Key> exclusive = {};  // claims that only one pod may have (ReadWriteOncePod)
};

inline constexpr std::string_view kExclusiveConflict =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod";

ClaimsView view_claims(const Snapshot& snapshot, const Pod& pod);

// As obstacle() of constraints.h.
std::optional<std::string> volume_obstacle(const ClaimsView& claims, const Node& node);

}  // namespace skiff::scheduler
