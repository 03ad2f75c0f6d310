#include "features/training/engine/restart_policy.h"

#include "api/meta.h"

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

bool taken_away(const json::value& failed_pod) {
  return api::condition_true(failed_pod, "DisruptionTarget") &&
         json::get_string(failed_pod, {"status", "reason"}) != "Evicted";
}

std::string_view pod_restart_policy(RestartPolicy policy, bool restart_gang) {
  const bool must_end = restart_gang || policy == RestartPolicy::kExitCode;
  return to_string(must_end ? RestartPolicy::kNever : policy);
}

}  // namespace skiff::training
