// What a Job says of its pods' ends: pod failure policy, success policy, back-off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "features/workloads/index_list.h"

namespace skiff::workloads {

inline constexpr std::string_view kIndexKey = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";

// podReplacementPolicy Failed: a pod that is on its way out has not failed yet.
bool only_replaces_ended(const json::value& job);
bool has_failed(const json::value& job, const json::value& pod);

struct Verdict {
  bool counts = true;  // for the limits
  bool fails_index = false;
  std::string fails_job = {};  // why; empty: it does not
};
// By the first rule of spec.podFailurePolicy that fits.
Verdict judge(const json::value& job, const json::value& failed_pod);

// "Matched rules at index 0" where spec.successPolicy is content.
std::optional<std::string> success_by_policy(const json::value& job, const Indexes& succeeded,
                                             std::int64_t completions);

// When the pod's last container ended, or the nearest that is known.
Time finished_at(const json::value& pod);
// How long a job waits after so many failures: 10 s, doubled by each, up to 10 min.
Duration failure_backoff(std::int64_t failures);
// How much of it is left after the failures since the last success.
Duration backoff_left(const json::value& job, const std::vector<Object>& pods, Time now);

std::optional<std::int64_t> completion_index(const json::value& pod);

}  // namespace skiff::workloads
