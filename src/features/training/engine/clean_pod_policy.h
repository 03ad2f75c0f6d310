// Which pods of a finished job are deleted (spec.runPolicy.cleanPodPolicy).
#pragma once

#include "features/training/engine/replicas.h"

namespace skiff::training {

bool cleans_up(CleanPodPolicy policy, Phase phase);

}  // namespace skiff::training
