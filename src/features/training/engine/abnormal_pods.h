// Warnings about pods that cannot start or start again and again, told on the job itself.
#pragma once

#include <vector>

#include "control/controller.h"
#include "features/training/engine/replicas.h"

namespace skiff::training {

// Jobs up to this size have their running pods looked into as well: it costs a walk over every
// container's status, and a crash loop of thousands shows in the job's restarts anyway.
inline constexpr std::size_t kClosePods = 1'000;

// One warning for each container that waits for something that does not come, or has ended badly
// and will be started again; for a pod that has no place yet, why. A handful speaks for all.
std::vector<control::Note> abnormal_notes(const Replicas& replicas);

}  // namespace skiff::training
