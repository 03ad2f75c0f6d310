#include "features/training/engine/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "features/training/engine/abnormal_pods.h"
#include "features/training/engine/active_deadline.h"
#include "features/training/engine/backoff_limit.h"
#include "features/training/engine/companions.h"
#include "features/training/engine/completion.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/draft.h"
#include "features/training/engine/gang.h"
#include "features/training/engine/history.h"
#include "features/training/engine/managed_by.h"
#include "features/training/engine/notes.h"
#include "features/training/engine/observe.h"
#include "features/training/engine/pod_template.h"
#include "features/training/engine/progress.h"
#include "features/training/engine/replica_statuses.h"
#include "features/training/engine/services.h"
#include "features/training/engine/suspension.h"

namespace skiff::training {
namespace {

Draft start(const JobKind& kind, const control::Observed& observed, Time now) {
  static const std::vector<Object> kNone;
  Draft draft{.job = read_job(kind, *observed.root), .now = now};
  draft.replicas = sort_replicas(
      draft.job, observed.owned.empty() ? kNone : observed.owned[0],
      observed.owned.size() < 2 || !kind.replica_services ? kNone : observed.owned[1]);
  draft.status = json::get_object(*observed.root, {"status"});
  return draft;
}

void greet(Draft& draft) {
  if (has_condition(draft.status, kCreated)) return;
  const Job& job = draft.job;
  set_condition(draft.status,
                {kCreated, true, condition_reason(job, "Created"),
                 fmt::format("{} {} is created.", job.kind->resource.kind, job.name)},
                draft.now);
  note_template_policies(job, draft.plan.notes);
}

// Only of pods that failed: of those that end well the job's own end is told, and events are most
// of what a small job costs an API server.
void note_failures(Draft& draft, const Findings& findings) {
  for (const FailedPod& failed : findings.failures) {
    const RoleCount& count = findings.counts[failed.role];
    const json::value* known =
        json::find(draft.status, {"replicaStatuses", count.role->name, "failed"});
    const bool told = known != nullptr && known->is_int64() && known->get_int64() >= count.failed;
    if (failed.final && told) continue;
    draft.plan.notes.push_back(exit_note(draft.job, api::name(*failed.pod), failed.code));
  }
}

bool tolerates_failure(const Job& job, const Role& role) {
  return job.kind->tolerates_failure != nullptr && job.kind->tolerates_failure(job, role);
}

// A node took away what the job cannot do without, and nothing brings it back.
JobFailure eviction(const Job& job, const Findings& findings) {
  std::int64_t evicted = 0;
  std::int64_t all = 0;
  for (const FailedPod& failed : findings.failures) {
    const Role& role = job.roles[failed.role];
    if (role.name != job.kind->evictable_role || !failed.final) continue;
    if (json::get_string(*failed.pod, {"status", "reason"}) != "Evicted") continue;
    ++evicted;
    all = role.replicas;
  }
  if (evicted == 0) return {};
  return {.message = fmt::format("{}/{} workers are evicted", evicted, all),
          .word = "Evicted",
          .warning = true};
}

// Why the job has failed, where it has.
JobFailure failure(const Draft& draft, const Findings& findings, const History& history,
                   const Deadline& deadline) {
  const Job& job = draft.job;
  if (JobFailure evicted = eviction(job, findings); !evicted.message.empty()) return evicted;
  for (std::size_t r = 0; r < job.roles.size(); ++r) {
    const Role& role = job.roles[r];
    if (findings.final_failures[r] == 0 || tolerates_failure(job, role)) continue;
    return {.message = fmt::format("{} has failed because {} {} replica(s) failed.", subject(job),
                                   findings.final_failures[r], role.name)};
  }
  const auto replaced = static_cast<std::int64_t>(findings.failed.size() + findings.lost.size());
  const RestartCount restarts{
      .replaced = history.restarts,
      .to_replace = job.run.restart_gang ? std::min<std::int64_t>(replaced, 1) : replaced,
      .in_place = findings.in_place_restarts};
  if (backoff_exceeded(job.run.backoff_limit, restarts)) {
    return {.message = fmt::format(
                "{} has failed because it has reached the specified backoff limit.", subject(job))};
  }
  if (deadline.exceeded) {
    return {.message =
                fmt::format("{} has failed because it was active longer than specified deadline.",
                            subject(job))};
  }
  return {};
}

void say_restarting(Draft& draft, const Findings& findings) {
  for (std::size_t r = 0; r < draft.job.roles.size(); ++r) {
    if (findings.replacing[r] == 0) continue;
    const std::string message =
        fmt::format("{} is restarting{} because {} {} replica(s) failed.", subject(draft.job),
                    draft.job.run.restart_gang ? " all replicas" : "", findings.replacing[r],
                    draft.job.roles[r].name);
    set_condition(draft.status,
                  {kRestarting, true, condition_reason(draft.job, "Restarting"), message},
                  draft.now);
    draft.note(true, "Restarting", message);
  }
}

void say_running(Draft& draft) {
  set_condition(draft.status,
                {kRunning, true, condition_reason(draft.job, "Running"),
                 fmt::format("{} is running.", subject(draft.job))},
                draft.now);
}

void remove_surplus(Draft& draft) {
  for (const json::value* pod : draft.replicas.surplus_pods) draft.delete_pod(*pod);
  for (const json::value* service : draft.replicas.surplus_services) draft.delete_service(*service);
}

// The next attempt of what has failed or was lost. A failed pod keeps the name until it is gone, so
// its successor is made by a later plan; that of a lost one at once.
void give_up_attempts(Draft& draft, const Findings& findings, History& history) {
  for (const Place& place : findings.failed) {
    const RoleSlots& role = draft.replicas.roles[place.role];
    history.replace(role.role->name, place.index);
    draft.delete_pod(*role.slots[static_cast<std::size_t>(place.index)].pod.object);
  }
  for (const Place& place : findings.lost) {
    history.replace(draft.job.roles[place.role].name, place.index);
  }
}

std::size_t environment_bytes(const json::value& pod) {
  std::size_t bytes = 0;
  for (const json::value& container : json::get_array(pod, {"spec", "containers"})) {
    for (const json::value& var : json::get_array(container, {"env"})) {
      bytes += json::get_string(var, {"value"}).size();
    }
  }
  return bytes;
}

void create_services(Draft& draft) {
  if (!draft.job.kind->replica_services) return;
  for (const RoleSlots& role : draft.replicas.roles) {
    for (std::size_t i = 0; i < role.slots.size(); ++i) {
      if (role.slots[i].service != nullptr) continue;
      draft.create_service(render_service(draft.job, *role.role, static_cast<std::int64_t>(i)));
      if (draft.created_services.size() < kPodsPerPlan) continue;
      draft.look_again_after(Duration::zero());
      return;
    }
  }
}

using States = std::vector<RoleState>;

bool held_back(const Job& job, const Role& role, const States& states) {
  return job.kind->holds_back != nullptr && job.kind->holds_back(job, role, states);
}

// Replicas that take no place in the gang: those that are done, and those that wait for the others.
std::int64_t absent_from(const Job& job, const States& states) {
  std::int64_t absent = 0;
  for (const RoleState& state : states) {
    const std::int64_t done = state.succeeded + state.failed;
    absent += held_back(job, *state.role, states) ? state.role->replicas : done;
  }
  return absent;
}

void create_pods(Draft& draft, const States& states, const std::vector<Place>& places,
                 const PodContext& context, History& history) {
  std::size_t bytes = 0;
  for (const Place& place : places) {
    const Role& role = draft.job.roles[place.role];
    if (held_back(draft.job, role, states)) continue;
    if (draft.created_pods.size() >= kPodsPerPlan || bytes >= kEnvironmentBytesPerPlan) {
      draft.look_again_after(Duration::zero());
      return;
    }
    RoleHistory& past = history.role(role.name);
    json::value pod = render_pod(context, role, place.index, past.attempt(place.index));
    bytes += environment_bytes(pod);
    draft.create_pod(std::move(pod));
    past.started.insert(place.index);
  }
}

// One replica has failed or was lost, and all start again: the others would wait for it, or go on
// with a past that it does not share. What the pods did counts no more. The successors of those
// that were lost are made first, and the others taken away by the next plan: where they were not
// lost, but only not seen yet, their names are taken and nothing of this happens.
void restart_gang(Draft& draft, const Findings& findings, History& history) {
  draft.plan.only_if_unchanged = true;
  history.replace_all(draft.job);
  if (!findings.lost.empty()) {
    States anew;
    for (const RoleState& state : findings.states) anew.push_back({.role = state.role});
    const PodContext context = pod_context(draft.job, absent_from(draft.job, anew));
    create_pods(draft, anew, findings.lost, context, history);
  }
  if (!draft.created_pods.empty()) return;
  for (const RoleSlots& role : draft.replicas.roles) {
    for (const Slot& slot : role.slots) {
      if (slot.pod.object != nullptr) draft.delete_pod(*slot.pod.object);
    }
  }
}

// Brings the pods to what the job asks for.
void change_pods(Draft& draft, const Findings& findings, History& history, bool restarting) {
  const bool together = draft.job.run.restart_gang;
  remove_surplus(draft);
  create_services(draft);
  if (together && restarting) return restart_gang(draft, findings, history);
  for (const json::value* pod : findings.leftovers) draft.delete_pod(*pod);
  if (together && findings.leaving > 0) return;  // none of the new may meet one of the old
  give_up_attempts(draft, findings, history);
  const std::int64_t absent = absent_from(draft.job, findings.states);
  if (!findings.lost.empty() || !findings.missing.empty()) {
    const PodContext context = pod_context(draft.job, absent);
    create_pods(draft, findings.states, findings.lost, context, history);
    create_pods(draft, findings.states, findings.missing, context, history);
  }
  refresh_gang(draft, absent, findings.waiting);
}

// A job that is neither finished nor suspended: the policies in their order.
void run(const control::Observed& observed, Draft& draft) {
  const Job& job = draft.job;
  if (!draft.status.contains("startTime")) draft.status["startTime"] = rfc3339(draft.now);
  History history = read_history(draft.status);
  const Findings findings = observe(job, draft.replicas, history);
  note_failures(draft, findings);
  write_replica_statuses(job, findings.counts, draft.status);

  const Verdict verdict = job.kind->judge(job, findings.states);
  const json::value* started = draft.status.if_contains("startTime");
  const Deadline deadline = check_deadline(
      job.run.active_deadline,
      started->is_string() ? parse_time(json::view(started->get_string())) : std::nullopt,
      draft.now);
  if (verdict.succeeded) {
    succeed(draft);
  } else if (JobFailure why = failure(draft, findings, history, deadline); !why.message.empty()) {
    fail_job(draft, std::move(why));
  } else {
    const bool restarting = !findings.failed.empty() || !findings.lost.empty();
    keep_companions(observed, draft);
    change_pods(draft, findings, history, restarting);
    say_restarting(draft, findings);
    if (verdict.running && !restarting) say_running(draft);
    if (deadline.look_again_after) draft.look_again_after(*deadline.look_again_after);
    draft.standing = abnormal_notes(draft.replicas);
  }
  write_history(history, draft.status);
}

}  // namespace

const api::Resource& pod_resource() {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  return kPods;
}

const api::Resource& service_resource() {
  static const api::Resource kServices{.version = "v1", .plural = "services", .kind = "Service"};
  return kServices;
}

control::Plan plan_job(const JobKind& kind, const control::Observed& observed, Time now) {
  if (api::deleting(*observed.root)) return {};
  Draft draft = start(kind, observed, now);
  if (!managed_here(draft.job.run.managed_by, kind.manager)) return {};
  if (finished(draft.status)) {
    after_end(draft);
  } else {
    greet(draft);
    if (draft.job.run.suspend) {
      suspend(draft);
    } else {
      resume(draft);
      run(observed, draft);
    }
  }
  take_progress(draft);
  return finish(std::move(draft));
}

control::Controller make_controller(const JobKind& kind) {
  std::vector<api::Resource> owned{pod_resource(), service_resource()};
  owned.insert(owned.end(), kind.companion_kinds.begin(), kind.companion_kinds.end());
  return {.name = kind.controller,
          .root = kind.resource,
          .owned = std::move(owned),
          .plan = [&kind](const control::Observed& observed, Time now) {
            return plan_job(kind, observed, now);
          }};
}

}  // namespace skiff::training
