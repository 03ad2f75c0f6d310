// status.progress: how far the job is, from what its replicas tell.
//
// The node writes what a replica's program says about its progress into an annotation of the pod,
// every few seconds at most. One replica speaks for the job, so that the job's status is written no
// more often than that replica's annotation; a thousand others cost nothing.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.h"
#include "features/training/engine/draft.h"

namespace skiff::training {

// {"pytorch": {"step": 10, ...}, ...}, by container.
inline constexpr std::string_view kProgressAnnotation = "training.skiff.dev/progress";
// So many replicas of each role are asked at most: a job of ten thousand that tells nothing is not
// searched through by every plan.
inline constexpr std::size_t kProgressReplicas = 16;

// Brings the status up to date. The master or chief speaks first, then workers by their index, then
// the rest. What was known stays where nobody says anything; the first step stays the first.
void take_progress(Draft& draft);

}  // namespace skiff::training
