// The gang that a job's pods form: how many of them start together (runPolicy.schedulingPolicy).
#pragma once

#include <cstdint>
#include <vector>

#include "features/training/engine/draft.h"

namespace skiff::training {

// How many pods must run at the same time for any to start. minAvailable where it is given, else
// all; of an elastic job as many workers as it can train with. One that asks for more pods than the
// job has waits until it is lowered or the job grows. The scheduler counts no pod that has ended
// (scheduler/snapshot.h): those are in `absent`, with those that are made later.
std::int64_t gang_min(const Job& job, std::int64_t absent);

// Pods that wait for a place were told a number when they were made. When replicas are done, the
// job is scaled or minAvailable is changed, they are told the new one: with the old one they could
// wait for pods that will never come.
void refresh_gang(Draft& draft, std::int64_t absent,
                  const std::vector<const json::value*>& waiting);

}  // namespace skiff::training
