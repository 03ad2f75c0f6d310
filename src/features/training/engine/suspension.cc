#include "features/training/engine/suspension.h"

#include <fmt/format.h>

#include "features/training/engine/conditions.h"
#include "features/training/engine/history.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/replica_statuses.h"

namespace skiff::training {
namespace {

void take_away_children(Draft& draft) {
  for (const RoleSlots& role : draft.replicas.roles) {
    for (const Slot& slot : role.slots) {
      if (slot.service != nullptr) draft.delete_service(*slot.service);
      if (slot.pod.object != nullptr) draft.delete_pod(*slot.pod.object);
    }
  }
  for (const json::value* service : draft.replicas.surplus_services) draft.delete_service(*service);
  for (const json::value* pod : draft.replicas.surplus_pods) draft.delete_pod(*pod);
}

}  // namespace

void suspend(Draft& draft) {
  const Job& job = draft.job;
  take_away_children(draft);
  History history = read_history(draft.status);
  history.forget_pods();
  write_history(history, draft.status);
  std::vector<RoleCount> none;
  for (const Role& role : job.roles) none.push_back({.role = &role});
  write_active(none, draft.status);

  if (has_condition(draft.status, kSuspended)) return;
  const std::string message = fmt::format("{} {} is suspended.", job.kind->resource.kind, job.name);
  const std::string reason = condition_reason(job, "Suspended");
  if (has_condition(draft.status, kRunning) || has_condition(draft.status, kRestarting)) {
    set_condition(draft.status, {kRunning, false, reason, message}, draft.now);
  }
  set_condition(draft.status, {kSuspended, true, reason, message}, draft.now);
  draft.note(false, "Suspended", message);
}

void resume(Draft& draft) {
  if (!has_condition(draft.status, kSuspended)) return;
  const Job& job = draft.job;
  const std::string message = fmt::format("{} {} is resumed.", job.kind->resource.kind, job.name);
  set_condition(draft.status, {kSuspended, false, condition_reason(job, "Resumed"), message},
                draft.now);
  draft.status["startTime"] = rfc3339(draft.now);
  draft.note(false, "Resumed", message);
}

}  // namespace skiff::training
