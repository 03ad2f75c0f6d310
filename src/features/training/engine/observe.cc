#include "features/training/engine/observe.h"

#include <algorithm>

#include "api/meta.h"
#include "features/training/engine/restart_policy.h"

namespace skiff::training {
namespace {

class Observer {
 public:
  Observer(const Job& job, std::size_t role, History& all, Findings& out)
      : job_(job),
        role_(job.roles[role]),
        at_(role),
        all_(all),
        history_(all.role(role_.name)),
        out_(out) {}

  void look(std::int64_t index, const Slot& slot) {
    if (slot.pod.object == nullptr) {
      look_at_empty(index);
      return;
    }
    all_.witness_attempt(role_.name, index, slot.pod.attempt);
    // A pod from before the last replacement: what it did has been counted.
    if (slot.pod.attempt < history_.attempt(index)) {
      if (!slot.pod.deleting) out_.leftovers.push_back(slot.pod.object);
      ++out_.leaving;
      return;
    }
    look_at_pod(index, slot.pod);
  }

 private:
  void look_at_empty(std::int64_t index) {
    if (history_.succeeded.contains(index)) return;
    (history_.started.contains(index) ? out_.lost : out_.missing).push_back({at_, index});
    if (history_.started.contains(index)) ++out_.replacing[at_];
  }

  void look_at_pod(std::int64_t index, const ReplicaPod& pod) {
    if (pod.phase == Phase::kSucceeded) history_.succeeded.insert(index);
    // Somebody takes the pod away: an eviction, a drain, a person. That is no failure of the
    // program, whatever the code it ends with; the replica counts as lost once the pod is gone.
    if (pod.deleting) return;
    history_.started.insert(index);
    if (pod.phase == Phase::kPending) look_at_pending(pod);
    if (pod.phase == Phase::kRunning) look_at_running(pod);
    if (pod.phase == Phase::kFailed) look_at_failed(index, pod);
  }

  void look_at_pending(const ReplicaPod& pod) {
    if (json::get_string(*pod.object, {"spec", "nodeName"}).empty()) {
      out_.waiting.push_back(pod.object);
    }
  }

  void look_at_running(const ReplicaPod& pod) {
    ++out_.states[at_].running;
    ++out_.counts[at_].active;
    if (job_.kind->holds_back != nullptr && api::condition_true(*pod.object, "Ready")) {
      ++out_.states[at_].ready;
    }
    // Only a limit asks for this, and it costs a walk over every container's status.
    if (!job_.run.backoff_limit || role_.restart == RestartPolicy::kNever) return;
    out_.in_place_restarts += container_restarts(*pod.object);
  }

  void look_at_failed(std::int64_t index, const ReplicaPod& pod) {
    // It succeeded before, so this failure is of a pod that should never have run.
    if (history_.succeeded.contains(index)) return;
    const std::int64_t code = exit_code(job_, *pod.object);
    const bool final_failure =
        after_failure(role_.restart, code) == AfterFailure::kFinal && !taken_away(*pod.object);
    out_.failures.push_back({.pod = pod.object, .role = at_, .code = code, .final = final_failure});
    ++out_.counts[at_].failed;
    if (final_failure) {
      ++out_.final_failures[at_];
      ++out_.states[at_].failed;
      return;
    }
    out_.failed.push_back({at_, index});
    ++out_.replacing[at_];
  }

  const Job& job_;
  const Role& role_;
  std::size_t at_;
  History& all_;
  RoleHistory& history_;
  Findings& out_;
};

// A restart of the whole gang whose note was lost: a pod of it is there, so all have begun anew. A
// replica without a pod tells nothing: its attempt is zero.
void witness_gang(const Job& job, const Replicas& replicas, History& history) {
  std::int64_t ahead = 0;
  for (std::size_t r = 0; r < job.roles.size(); ++r) {
    const std::vector<Slot>& slots = replicas.roles[r].slots;
    const RoleHistory& past = history.role(job.roles[r].name);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      ahead = std::max(ahead, slots[i].pod.attempt - past.attempt(static_cast<std::int64_t>(i)));
    }
  }
  if (ahead > 0) history.replace_all(job, ahead);
}

}  // namespace

Findings observe(const Job& job, const Replicas& replicas, History& history) {
  Findings out;
  out.states.resize(job.roles.size());
  out.counts.resize(job.roles.size());
  out.final_failures.resize(job.roles.size());
  out.replacing.resize(job.roles.size());
  history.truncate(job);
  if (job.run.restart_gang) witness_gang(job, replicas, history);
  for (std::size_t r = 0; r < job.roles.size(); ++r) {
    const std::vector<Slot>& slots = replicas.roles[r].slots;
    out.states[r].role = out.counts[r].role = &job.roles[r];
    Observer observer(job, r, history, out);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      observer.look(static_cast<std::int64_t>(i), slots[i]);
    }
    const RoleHistory& past = history.role(job.roles[r].name);
    out.states[r].succeeded = out.counts[r].succeeded = past.succeeded.size();
    out.states[r].first_succeeded = past.succeeded.contains(0);
  }
  return out;
}

}  // namespace skiff::training
