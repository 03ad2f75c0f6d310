// Jobs: pods that run to their end, as many as asked for, in order to be counted.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

// On a pod whose end is part of the job's counts, or that the job gave up: it counts no more.
inline constexpr std::string_view kCounted = "skiff.dev/job-counted";

control::Plan plan_job(const control::Observed& observed, Time now);
control::Controller job_controller();

}  // namespace skiff::workloads
