// The Job of one replica of a JobSet, with the labels by which upstream's users find it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace skiff::jobsets {

inline constexpr std::string_view kJobSetName = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kPartName = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kJobIndex = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kRestartAttempt = "jobset.sigs.k8s.io/restart-attempt";
// Read by the scheduler. Each attempt of a set is a gang of its own: pods of the last one that
// still end do not make up for those of the next.
inline constexpr std::string_view kGangAnnotation = "scheduling.skiff.dev/gang";

// `jobset` with its defaults; `part` is one of its replicatedJobs.
json::value child_job(const json::value& jobset, const json::value& part, std::int64_t index,
                      std::int64_t restarts);

// The patch that takes a suspended job up again with what the set's template says now of labels,
// annotations, node selector, tolerations and gates.
json::value resumption(const json::value& job, const json::value& part);

json::value headless_service(const json::value& jobset);

}  // namespace skiff::jobsets
