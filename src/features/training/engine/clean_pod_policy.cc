#include "features/training/engine/clean_pod_policy.h"

namespace skiff::training {

bool cleans_up(CleanPodPolicy policy, Phase phase) {
  switch (policy) {
    case CleanPodPolicy::kNone:
      return false;
    case CleanPodPolicy::kRunning:
      // A pod that waits would run as soon as there is room.
      return phase == Phase::kRunning || phase == Phase::kPending;
    case CleanPodPolicy::kAll:
      return true;
  }
  return false;
}

}  // namespace skiff::training
