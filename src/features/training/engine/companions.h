// The objects a job has beside its pods: a config map, a service account and its rights.
//
// A kind says what they should be (JobKind::companions); the engine makes those that are missing
// before any pod that mounts or uses them, and mends those that somebody has changed. They go with
// the job, by their owner reference.
#pragma once

#include "features/training/engine/draft.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// Adds what is to be made or mended to the plan.
void keep_companions(const control::Observed& observed, Draft& draft);

// Whether `object` has every field of `wanted`, and there the same. Lists must be equal; fields
// that only `object` has are the server's, or somebody's, and are let be.
bool has_all_of(const json::value& object, const json::value& wanted);

}  // namespace skiff::training
