// How far a rollout is, which revisions there are, and what takes one back. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

// Deployment, StatefulSet and DaemonSet are rolled out; nothing else is.
bool rolls_out(const json::value& object);

struct RolloutStatus {
  std::string text = {};  // one line, without its end
  bool done = false;
};
// As kubectl says it. `revision` 0: whichever; another is an error where it is not the one running.
Result<RolloutStatus> rollout_status(const json::value& object, std::int64_t revision);

struct Revision {
  std::int64_t number = 0;
  std::string cause = {};         // kubernetes.io/change-cause
  json::value pod_template = {};  // as the object itself would have it
  json::object annotations = {};  // that go back with it
};
// What keeps the revisions of an object: its ReplicaSets or its ControllerRevisions.
api::Resource revision_keeper(const json::value& object);
// `kept`: objects of that resource; those of others are passed over. Oldest first.
std::vector<Revision> revisions_of(const json::value& object, const std::vector<Object>& kept);
std::string history_table(const std::vector<Revision>& revisions);

// The revision of that number, or where it is 0 the one before the newest.
Result<Revision> find_revision(const json::value& object, const std::vector<Revision>& revisions,
                               std::int64_t number);
// JSON patch that makes the object as it was at that revision; empty: it is.
json::array undo_patch(const json::value& object, const Revision& revision);

// Merge patches. An error says why that cannot be done now.
Result<json::object> pause_patch(const json::value& object, bool pause);
Result<json::object> restart_patch(const json::value& object, std::string_view now);

}  // namespace skiff::cli
