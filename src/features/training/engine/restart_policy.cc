#include "features/training/engine/restart_policy.h"

namespace skiff::training {

AfterFailure after_failure(RestartPolicy policy, std::int64_t exit_code) {
  switch (policy) {
    case RestartPolicy::kAlways:
    case RestartPolicy::kOnFailure:
      return AfterFailure::kReplace;
    case RestartPolicy::kNever:
      return AfterFailure::kFinal;
    case RestartPolicy::kExitCode:
      // From 128 on a signal ended the program (or the node lost it): trying again may help. Below,
      // the program itself said that it cannot go on.
      return exit_code >= 128 ? AfterFailure::kReplace : AfterFailure::kFinal;
  }
  return AfterFailure::kFinal;
}

std::string_view pod_restart_policy(RestartPolicy policy) {
  return to_string(policy == RestartPolicy::kExitCode ? RestartPolicy::kNever : policy);
}

}  // namespace skiff::training
