// Compares the pods that are there with what the job remembers, and says what became of each
// replica.
#pragma once

#include <cstdint>
#include <vector>

#include "features/training/engine/history.h"
#include "features/training/engine/job.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/replica_statuses.h"
#include "features/training/engine/replicas.h"

namespace skiff::training {

struct Place {
  std::size_t role = 0;  // index in Job::roles
  std::int64_t index = 0;
};

// A pod that has failed, and how.
struct FailedPod {
  const json::value* pod = nullptr;
  std::size_t role = 0;
  std::int64_t code = 0;
  bool final = false;  // the pod stays, so that every later plan finds it too
};

struct Findings {
  std::vector<RoleState> states = {};  // in the order of Job::roles
  std::vector<RoleCount> counts = {};
  std::vector<Place> failed = {};                  // has a failed pod and is to be replaced
  std::vector<Place> lost = {};                    // was started, did not succeed, has no pod
  std::vector<Place> missing = {};                 // has no pod and should have one
  std::vector<const json::value*> leftovers = {};  // pods of attempts already given up
  std::int64_t leaving = 0;                        // the same, those being deleted included
  std::vector<const json::value*> waiting = {};    // pods without a node
  std::vector<std::int64_t> final_failures = {};   // for each role: failed for good
  std::vector<std::int64_t> replacing = {};        // for each role: failed or lost
  std::vector<FailedPod> failures = {};            // in the order found
  std::int64_t in_place_restarts = 0;
};

// Also brings `history` up to date with what the pods show.
Findings observe(const Job& job, const Replicas& replicas, History& history);

}  // namespace skiff::training
