#include "features/training/engine/verdict.h"

#include <algorithm>

namespace skiff::training {

Verdict judge_by(const Role* decisive, std::span<const RoleState> roles) {
  if (decisive == nullptr) return {};
  const RoleState& state = *std::ranges::find(roles, decisive, &RoleState::role);
  return {.succeeded = decisive->replicas > 0 && state.succeeded >= decisive->replicas,
          .running = state.running > 0};
}

const Role* master_or_workers(const Job& job) {
  const Role* master = job.role("Master");
  return master != nullptr ? master : job.role("Worker");
}

}  // namespace skiff::training
