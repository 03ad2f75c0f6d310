// The gang that a Job's pods form, alone or with those of other Jobs (of a JobSet).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "control/controller.h"

namespace skiff::workloads {

// Read by the scheduler: how many pods of a gang must run at the same time now. It counts no pod
// that has ended (scheduler/snapshot.h), so whoever makes them tells a new number when some are
// done.
inline constexpr std::string_view kGangMin = "scheduling.skiff.dev/gang-min";
// Of a Job's template: how many of those were counted as this Job's when the gang was formed. The
// Job's own number where it is absent, which somebody may have changed.
inline constexpr std::string_view kGangShare = "scheduling.skiff.dev/gang-share";

// What has become of a Job's pods so far.
struct Counts {
  std::int64_t succeeded = 0;
  std::int64_t lost = 0;  // indexes that failed for good
  std::int64_t active = 0;
};
// How many pods the job still wants at a time.
std::int64_t left_to_run(const json::value& job, const Counts& counts);

// The other Jobs whose pods are in the same gang; none where the Job alone is one.
control::Related jobs_of_gang();

// How many pods of the gang are to run at the same time, when `left` of this job's are still to be
// done: what the template asks for, and no more than all its Jobs still bring. Pods that are done
// run no more; were they counted, the replacement of another would wait for them for ever. A Job of
// a JobSet counts on siblings that failed or are not there: the set makes them (again).
// Empty: the job's pods are in no gang.
std::string gang_min(const json::value& job, std::int64_t left, const std::vector<Object>& jobs);

// Whether a pod of the job's gang that waits for its place was told another number when it was
// made.
bool is_told_otherwise(const json::value& job, const json::value& pod, std::string_view gang_min);
// Whatever the scheduler has written of the pod meanwhile: that must not refuse the job's plan.
client::Write tell(const json::value& pod, std::string_view gang_min);

}  // namespace skiff::workloads
