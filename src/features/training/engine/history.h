// What a job remembers about replicas whose pods may be gone, kept in its status.
//
// A pod is the only witness of its own end, and anybody may delete it. So the job writes down which
// replicas were started, which succeeded and how often each was replaced. A replica that was
// started, did not succeed and has no pod was lost: it is replaced, and that counts as a restart,
// also when the controller died between the deletion and its own note of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "features/training/engine/index_set.h"
#include "features/training/engine/job.h"

namespace skiff::training {

struct RoleHistory {
  IndexSet started = {};    // replicas whose present attempt has, or had, a pod
  IndexSet succeeded = {};  // replicas that are done and never run again
  std::map<std::int64_t, std::int64_t> attempts = {};  // how often each was replaced; absent: never

  std::int64_t attempt(std::int64_t index) const;
  // The start of a new attempt: the replica has no pod yet.
  void next_attempt(std::int64_t index, std::int64_t times = 1);
};

struct History {
  std::map<std::string, RoleHistory, std::less<>> roles = {};  // by the role's name in the API
  std::int64_t restarts = 0;  // of all replicas since the job was made, removed ones included

  RoleHistory& role(std::string_view name);
  // A pod of a later attempt than the one written down: it was made, but the note of it was lost.
  void witness_attempt(std::string_view role_name, std::int64_t index, std::int64_t attempt);
  void replace(std::string_view role_name, std::int64_t index);
  // Every replica of the job begins a new attempt, those that were done included: the others could
  // not train without them. That is one restart.
  void replace_all(const Job& job, std::int64_t times = 1);
  // All pods are taken away on purpose. Their successes go too: a resumed job trains with all of
  // its replicas, and one that is missing would keep the others waiting.
  void forget_pods();
  void truncate(const Job& job);  // to the replicas the job still has
};

History read_history(const json::value& status);
void write_history(const History& history, json::object& status);

}  // namespace skiff::training
