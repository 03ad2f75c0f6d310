// The gang that a Job's pods form, alone or with those of other Jobs (of a JobSet).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "control/controller.h"

namespace skiff::workloads {

// Read by the scheduler: how many pods of a gang start together.
inline constexpr std::string_view kGangMin = "scheduling.skiff.dev/gang-min";

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

// How many pods of the gang start together, when `left` of this job's are still to be done: those
// of all its Jobs but the ones that are done, which take no place any more. Were they counted, the
// replacement of another would wait for them for ever. A Job of a JobSet counts on siblings that
// are not there; any other asks for no more pods than the Jobs that are there still bring.
// Empty: the job's pods are in no gang.
std::string gang_min(const json::value& job, std::int64_t left, const std::vector<Object>& jobs);

// Whether a pod of the job's gang that waits for its place was told another number when it was
// made.
bool is_told_otherwise(const json::value& job, const json::value& pod, std::string_view gang_min);
// Whatever the scheduler has written of the pod meanwhile: that must not refuse the job's plan.
client::Write tell(const json::value& pod, std::string_view gang_min);

}  // namespace skiff::workloads
