// status.trainerStatus: how far a training is, from what its first pod tells.
//
// The node writes what a program says about its progress into an annotation of the pod, every few
// seconds at most; one pod speaks for the job.
#pragma once

#include <string_view>

#include "base/json.h"

namespace skiff::trainer {

// {"node": {"step": 10, ...}, ...}, by container.
inline constexpr std::string_view kProgressAnnotation = "training.skiff.dev/progress";

// What a pod tells, in upstream's words: progressPercentage, estimatedRemainingSeconds, metrics
// (steps and epochs among them), lastUpdatedTime. Empty where it tells nothing that can be used.
json::object trainer_status(const json::value& pod);

// Whether `told` is newer than what stands there, which a program may have written itself.
bool is_news(const json::value* known, const json::object& told);

}  // namespace skiff::trainer
