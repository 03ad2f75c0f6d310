#include "features/training/engine/completion.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "features/training/engine/clean_pod_policy.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/job_kind.h"
#include "features/training/engine/notes.h"
#include "features/training/engine/plan.h"
#include "features/training/engine/replica_statuses.h"
#include "features/training/engine/retention.h"

namespace skiff::training {
namespace {

std::optional<Time> completion_time(Draft& draft) {
  const json::value* stamp = draft.status.if_contains("completionTime");
  if (stamp == nullptr || !stamp->is_string()) {
    stamp = &(draft.status["completionTime"] = rfc3339(draft.now));
  }
  return parse_time(json::view(stamp->get_string()));
}

bool ended(Phase phase) { return phase == Phase::kSucceeded || phase == Phase::kFailed; }

// Ends a pod whose log is to stay: its node does, because its time is over. One that is on no node
// has no log.
void stop_pod(Draft& draft, const json::value& pod) {
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) return draft.delete_pod(pod);
  if (json::get_int(pod, {"spec", "activeDeadlineSeconds"}) == 1) return;
  draft.plan.writes.push_back(
      {.verb = client::Verb::kMergePatch,
       .resource = pod_resource(),
       .ns = std::string(api::ns(pod)),
       .name = std::string(api::name(pod)),
       .body = json::object{{"spec", json::object{{"activeDeadlineSeconds", 1}}}},
       .uid = std::string(api::uid(pod))});
}

void clean_up(Draft& draft) {
  const CleanPodPolicy policy = draft.job.run.clean_pods;
  for (const RoleSlots& role : draft.replicas.roles) {
    const bool kept = role.role->name == draft.job.kind->kept_role;
    for (const Slot& slot : role.slots) {
      if (kept) {
        // Its log is the job's; but of a job that failed it may still run, and would for ever.
        const bool stops =
            slot.pod.object != nullptr && !ended(slot.pod.phase) && policy != CleanPodPolicy::kNone;
        if (stops) stop_pod(draft, *slot.pod.object);
        continue;
      }
      // A service goes with its pod, and before it: were only the pod gone, nothing would lead back
      // to the service.
      const bool cleans = slot.pod.object != nullptr && cleans_up(policy, slot.pod.phase);
      if (slot.service != nullptr && (cleans || policy == CleanPodPolicy::kAll)) {
        draft.delete_service(*slot.service);
      }
      if (cleans) draft.delete_pod(*slot.pod.object);
    }
  }
  for (const json::value* pod : draft.replicas.surplus_pods) {
    if (cleans_up(policy, read_phase(*pod))) draft.delete_pod(*pod);
  }
  if (policy != CleanPodPolicy::kAll) return;
  for (const json::value* service : draft.replicas.surplus_services) draft.delete_service(*service);
}

// A failed job's pods may run on for a while; its status follows them to their end.
void count_active(Draft& draft) {
  std::vector<RoleCount> counts;
  for (const RoleSlots& role : draft.replicas.roles) {
    RoleCount& count = counts.emplace_back(RoleCount{.role = role.role});
    for (const Slot& slot : role.slots) {
      count.active +=
          slot.pod.object != nullptr && !slot.pod.deleting && slot.pod.phase == Phase::kRunning;
    }
  }
  write_active(counts, draft.status);
}

}  // namespace

void succeed(Draft& draft) {
  const std::string message = fmt::format("{} successfully completed.", subject(draft.job));
  draft.status["completionTime"] = rfc3339(draft.now);
  set_condition(draft.status, {kSucceeded, true, condition_reason(draft.job, "Succeeded"), message},
                draft.now);
  settle_succeeded(draft.status);
  draft.note(false, "Succeeded", message);
}

void fail_job(Draft& draft, JobFailure why) {
  draft.status["completionTime"] = rfc3339(draft.now);
  set_condition(draft.status, {kFailed, true, condition_reason(draft.job, why.word), why.message},
                draft.now);
  draft.note(why.warning, why.word, std::move(why.message));
}

void after_end(Draft& draft) {
  clean_up(draft);
  if (has_condition(draft.status, kSucceeded)) {
    settle_succeeded(draft.status);
  } else {
    count_active(draft);
  }
  const Retention retention = check_retention(draft.job.run.ttl, completion_time(draft), draft.now);
  draft.plan.delete_root = retention.delete_now;
  if (retention.delete_now) draft.plan.notes.push_back(deletion_note(draft.job));
  if (retention.look_again_after) draft.look_again_after(*retention.look_again_after);
}

}  // namespace skiff::training
