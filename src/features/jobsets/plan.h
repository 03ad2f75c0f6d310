// The JobSet controller: what to do next for a set of jobs.
#pragma once

#include "control/controller.h"

namespace skiff::jobsets {

// Jobs made by one plan at most; the rest follows at once.
inline constexpr std::int64_t kJobsPerPlan = 500;

// Pure. `observed.owned` holds the set's jobs; `observed.seen` the service of its subdomain
// and claims that are called after it, whoever made them.
control::Plan plan_jobset(const control::Observed& observed, Time now);
control::Controller jobset_controller();

}  // namespace skiff::jobsets
