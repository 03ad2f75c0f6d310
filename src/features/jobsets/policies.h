// When a JobSet has succeeded, and what follows when one of its jobs fails.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::jobsets {

// The set's jobs of the present attempt, and those that are left of earlier ones.
struct Children {
  std::vector<Object> active = {};
  std::vector<Object> succeeded = {};
  std::vector<Object> failed = {};
  std::vector<Object> previous = {};
  std::set<std::string, std::less<>> names = {};  // of all of them

  bool has(std::string_view name) const { return names.contains(name); }
};

Children sort_children(const std::vector<Object>& jobs, std::int64_t restarts);

bool succeeded(const json::value& jobset, const Children& children);

struct Failure {
  enum class What { kFail, kRestart, kRestartUncounted };
  What what = What::kFail;
  std::string reason = {};     // of the condition Failed, or of the event that tells of a restart
  std::string condition = {};  // the reason of the condition RestartingJobSet
  std::string message = {};
};

// `children.failed` is not empty. `counted` restarts count for maxRestarts so far.
Failure judge_failure(const json::value& jobset, const Children& children, std::int64_t counted);

// What a part's jobs are doing: an entry of status.replicatedJobsStatus.
struct PartState {
  std::string_view name = {};
  std::int64_t replicas = 0;
  std::int64_t ready = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  std::int64_t active = 0;
  std::int64_t suspended = 0;

  bool started() const { return replicas == ready + succeeded + failed; }
  json::object shown() const;
};

// In the order of the spec.
std::vector<PartState> part_states(const json::value& jobset, const Children& children);
// Whether what the part depends on has come so far.
bool may_start(const json::value& part, const std::vector<PartState>& states);

}  // namespace skiff::jobsets
