// The job engine: what to do next for a training job of any kind.
#pragma once

#include "base/time.h"
#include "control/controller.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// Pods made by one plan at most. A transaction stays short and the loop stays free for other jobs;
// the plan asks to be called again at once for the rest.
inline constexpr std::size_t kPodsPerPlan = 1'000;
// Environment written by one plan at most. TF_CONFIG lists every replica in every replica, so that
// ten thousand of them would be gigabytes in one go.
inline constexpr std::size_t kEnvironmentBytesPerPlan = 32 * 1024 * 1024;

// Pure. `observed.owned` holds the job's pods, then its services, then its companions by kind.
control::Plan plan_job(const JobKind& kind, const control::Observed& observed, Time now);

// The controller of a kind: the engine with the kind filled in. `kind` must live as long as it.
control::Controller make_controller(const JobKind& kind);

const api::Resource& pod_resource();
const api::Resource& service_resource();

}  // namespace skiff::training
