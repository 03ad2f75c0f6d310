#include "features/workloads/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "features/workloads/adoption.h"
#include "features/workloads/pods.h"
#include "features/workloads/rollout.h"

namespace skiff::workloads {
namespace {

struct Condition {
  std::string_view type = {};
  std::string_view status = {};
  std::string_view reason = {};
  std::string message = {};
};

const json::object* find_condition(const json::object& status, std::string_view type) {
  const json::value* list = status.if_contains("conditions");
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const json::value& condition : list->get_array()) {
    if (json::get_string(condition, {"type"}) == type) return &condition.get_object();
  }
  return nullptr;
}

std::string_view text(const json::object* condition, std::string_view field) {
  if (condition == nullptr || !condition->contains(field)) return {};
  const json::value& value = condition->at(field);
  return value.is_string() ? json::view(value.get_string()) : std::string_view();
}

void drop_condition(json::object& status, std::string_view type) {
  if (!status.contains("conditions")) return;
  json::array kept;
  for (const json::value& condition : status["conditions"].as_array()) {
    if (json::get_string(condition, {"type"}) != type) kept.push_back(condition);
  }
  status["conditions"] = std::move(kept);
}

// A condition that says the same for the same reason stays, unless `again`: there is news of it.
void set_condition(json::object& status, const Condition& next, Time now, bool again = false) {
  const json::object* before = find_condition(status, next.type);
  const bool same = before != nullptr && text(before, "status") == next.status;
  if (same && !again && text(before, "reason") == next.reason) return;
  const std::string at = rfc3339(now);
  const std::string since(same ? text(before, "lastTransitionTime") : std::string_view(at));
  drop_condition(status, next.type);
  if (!status.contains("conditions")) status["conditions"] = json::array{};
  status["conditions"].as_array().push_back(json::object{{"type", json::string(next.type)},
                                                         {"status", json::string(next.status)},
                                                         {"lastUpdateTime", at},
                                                         {"lastTransitionTime", since},
                                                         {"reason", json::string(next.reason)},
                                                         {"message", next.message}});
}

std::int64_t count(const json::object& status, std::string_view field) {
  return int_at(json::value(status), {field});
}

bool complete(const Rollout& rollout, const json::object& status) {
  return count(status, "updatedReplicas") == rollout.replicas() &&
         count(status, "replicas") == rollout.replicas() &&
         count(status, "availableReplicas") == rollout.replicas() &&
         count(status, "observedGeneration") >=
             int_at(rollout.deployment(), {"metadata", "generation"});
}

bool progresses(const json::object& before, const json::object& after) {
  const auto old_ones = [](const json::object& status) {
    return count(status, "replicas") - count(status, "updatedReplicas");
  };
  return count(after, "updatedReplicas") > count(before, "updatedReplicas") ||
         old_ones(after) < old_ones(before) ||
         count(after, "readyReplicas") > count(before, "readyReplicas") ||
         count(after, "availableReplicas") > count(before, "availableReplicas");
}

// The counts and whether enough pods are there; `status` has the conditions as they are.
void tell_counts(const Rollout& rollout, json::object& status) {
  const std::vector<Set*> sets = rollout.all();
  const std::int64_t available = sum(sets, "availableReplicas");
  status["observedGeneration"] = int_at(rollout.deployment(), {"metadata", "generation"});
  set_count(status, "replicas", sum(sets, "replicas"));
  set_count(status, "updatedReplicas",
            rollout.current() == nullptr ? 0 : rollout.current()->count("replicas"));
  set_count(status, "readyReplicas", sum(sets, "readyReplicas"));
  set_count(status, "availableReplicas", available);
  set_count(status, "unavailableReplicas",
            std::max<std::int64_t>(0, sum_replicas(sets) - available));
  status["terminatingReplicas"] = sum(sets, "terminatingReplicas");
  const bool enough = available >= rollout.replicas() - rollout.unavailable();
  set_condition(status,
                {.type = "Available",
                 .status = enough ? "True" : "False",
                 .reason = enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                 .message = enough ? "Deployment has minimum availability."
                                   : "Deployment does not have minimum availability."},
                rollout.now());
}

std::optional<Time> deadline(const Rollout& rollout, const json::object* progressing) {
  const auto since = parse_time(text(progressing, "lastUpdateTime"));
  if (!since) return std::nullopt;
  return *since +
         std::chrono::seconds(int_at(rollout.deployment(), {"spec", "progressDeadlineSeconds"}));
}

// How the rollout goes: under way, done, or stuck for too long.
void tell_progress(const Rollout& rollout, const json::object& before, json::object& status) {
  if (!rollout.has_deadline()) return drop_condition(status, "Progressing");
  const json::object* known = find_condition(status, "Progressing");
  const std::string_view reason = text(known, "reason");
  const bool known_complete = count(status, "replicas") == count(status, "updatedReplicas") &&
                              reason == "NewReplicaSetAvailable";
  if (known_complete) return;
  const std::string who = rollout.current() == nullptr
                              ? fmt::format("Deployment \"{}\"", api::name(rollout.deployment()))
                              : fmt::format("ReplicaSet \"{}\"", api::name(rollout.current()->now));
  const auto limit = deadline(rollout, known);
  if (complete(rollout, status)) {
    set_condition(status,
                  {.type = "Progressing",
                   .status = "True",
                   .reason = "NewReplicaSetAvailable",
                   .message = who + " has successfully progressed."},
                  rollout.now());
  } else if (progresses(before, status)) {
    set_condition(status,
                  {.type = "Progressing",
                   .status = "True",
                   .reason = "ReplicaSetUpdated",
                   .message = who + " is progressing."},
                  rollout.now(), true);
  } else if (reason == "ProgressDeadlineExceeded" ||
             (reason != "NewReplicaSetAvailable" && limit && *limit < rollout.now())) {
    set_condition(status,
                  {.type = "Progressing",
                   .status = "False",
                   .reason = "ProgressDeadlineExceeded",
                   .message = who + " has timed out progressing."},
                  rollout.now());
  }
}

// What keeps a set from making its pods: the current one's words, else those of an old one.
void tell_replica_failure(const Rollout& rollout, json::object& status) {
  std::vector<Set*> sets = rollout.old();
  if (rollout.current() != nullptr) sets.insert(sets.begin(), rollout.current());
  for (const Set* set : sets) {
    const json::object* failure = api::condition(set->now, "ReplicaFailure");
    if (failure == nullptr) continue;
    return set_condition(status,
                         {.type = "ReplicaFailure",
                          .status = text(failure, "status"),
                          .reason = text(failure, "reason"),
                          .message = std::string(text(failure, "message"))},
                         rollout.now());
  }
  drop_condition(status, "ReplicaFailure");
}

control::Plan finish_rollout(Rollout& rollout, json::object status) {
  const json::object before = json::get_object(rollout.deployment(), {"status"});
  tell_counts(rollout, status);
  tell_progress(rollout, before, status);
  tell_replica_failure(rollout, status);
  const json::object* known = find_condition(status, "Progressing");
  const bool waits = rollout.has_deadline() && !complete(rollout, status) &&
                     text(known, "reason") != "ProgressDeadlineExceeded";
  const auto limit = waits ? deadline(rollout, known) : std::nullopt;
  control::Plan plan = rollout.finish(std::move(status));
  if (limit) {
    // Times are kept in whole seconds, so a second later it is certain.
    sooner(plan.requeue_after,
           std::max<Duration>(*limit - rollout.now(), Duration(0)) + std::chrono::seconds(1));
  }
  return plan;
}

// Paused, or its size was changed: sets are scaled, and none is made.
control::Plan resize(Rollout& rollout, json::object status) {
  rollout.renew_current();
  std::vector<Set*> sets = rollout.active_old();
  Set* current = rollout.current();
  if (current != nullptr && current->replicas() > 0) sets.push_back(current);
  const bool saturated = current != nullptr && current->replicas() == rollout.replicas() &&
                         current->count("availableReplicas") == rollout.replicas();
  if (sets.size() == 1) {
    rollout.scale(*sets.front(), rollout.replicas());
  } else if (sets.empty()) {
    Set* latest =
        current != nullptr ? current : (rollout.old().empty() ? nullptr : rollout.old().back());
    if (latest != nullptr) rollout.scale(*latest, rollout.replicas());
  } else if (saturated) {
    for (Set* set : rollout.active_old()) rollout.scale(*set, 0);
  } else if (!rollout.recreates()) {
    scale_in_proportion(rollout);
  }
  if (json::get_bool(rollout.deployment(), {"spec", "paused"}).value_or(false)) rollout.clean_up();
  tell_counts(rollout, status);
  return rollout.finish(std::move(status));
}

bool scale_down_old(Rollout& rollout) {
  std::vector<Set*> old = rollout.active_old();
  if (old.empty()) return false;
  Set& current = *rollout.current();
  const std::int64_t least = rollout.replicas() - rollout.unavailable();
  const std::int64_t missing = current.replicas() - current.available();
  const std::int64_t most = sum_replicas(rollout.all()) - least - missing;
  if (most <= 0) return false;
  // First what does not work anyway, then what can be spared.
  std::int64_t gone = 0;
  for (Set* set : old) {
    const std::int64_t broken = set->replicas() - set->available();
    const std::int64_t step = std::min(most - gone, broken);
    if (step <= 0) continue;
    rollout.scale(*set, set->replicas() - step);
    gone += step;
  }
  std::int64_t spare = -least;
  for (const Set* set : rollout.all()) spare += set->available();
  for (Set* set : old) {
    const std::int64_t step = std::min(set->replicas(), spare);
    if (step <= 0) continue;
    rollout.scale(*set, set->replicas() - step);
    spare -= step;
    gone += step;
  }
  return gone > 0;
}

// The set of the current template: found or made; false where only the next plan can make it.
bool ensure_current(Rollout& rollout, json::object& status) {
  const bool found = rollout.current() != nullptr;
  if (!rollout.make_current()) {
    status["collisionCount"] = count(status, "collisionCount") + 1;
    return false;
  }
  if (found) rollout.renew_current();
  if (!rollout.has_deadline()) return true;
  const std::string name(api::name(rollout.current()->now));
  if (!found) {
    set_condition(status,
                  {.type = "Progressing",
                   .status = "True",
                   .reason = "NewReplicaSetCreated",
                   .message = fmt::format("Created new replica set \"{}\"", name)},
                  rollout.now());
  } else if (find_condition(status, "Progressing") == nullptr) {
    set_condition(status,
                  {.type = "Progressing",
                   .status = "True",
                   .reason = "FoundNewReplicaSet",
                   .message = fmt::format("Found new replica set \"{}\"", name)},
                  rollout.now());
  }
  return true;
}

control::Plan roll(Rollout& rollout, json::object status) {
  if (!ensure_current(rollout, status)) return finish_rollout(rollout, std::move(status));
  Set& current = *rollout.current();
  const std::int64_t size = current.replicas() > rollout.replicas()
                                ? rollout.replicas()
                                : next_size(rollout, current.replicas());
  if (size != current.replicas()) {
    rollout.scale(current, size);
  } else if (!scale_down_old(rollout) &&
             complete(rollout, json::get_object(rollout.deployment(), {"status"}))) {
    rollout.clean_up();
  }
  return finish_rollout(rollout, std::move(status));
}

// A set that has not yet heard that it is to shrink has pods all the same.
bool has_pods(const Set& set) {
  return set.count("replicas") > 0 || set.count("terminatingReplicas") > 0 ||
         int_at(set.now, {"metadata", "generation"}) > set.count("observedGeneration");
}

control::Plan recreate(Rollout& rollout, json::object status) {
  rollout.renew_current();
  bool shrunk = false;
  for (Set* set : rollout.active_old()) shrunk |= rollout.scale(*set, 0);
  const bool busy =
      std::ranges::any_of(rollout.old(), [](const Set* set) { return has_pods(*set); });
  if (shrunk || busy) return finish_rollout(rollout, std::move(status));
  if (!ensure_current(rollout, status)) return finish_rollout(rollout, std::move(status));
  rollout.scale(*rollout.current(), rollout.replicas());
  if (complete(rollout, json::get_object(rollout.deployment(), {"status"}))) rollout.clean_up();
  return finish_rollout(rollout, std::move(status));
}

bool size_was_changed(const Rollout& rollout) {
  return std::ranges::any_of(rollout.all(), [&](const Set* set) {
    const std::string_view desired = api::annotation(set->now, kDesiredReplicas);
    return set->replicas() > 0 && !desired.empty() && desired != std::to_string(rollout.replicas());
  });
}

void tell_pause(const Rollout& rollout, bool paused, json::object& status) {
  if (!rollout.has_deadline()) return;
  const std::string_view reason = text(find_condition(status, "Progressing"), "reason");
  if (reason == "ProgressDeadlineExceeded" || paused == (reason == "DeploymentPaused")) return;
  set_condition(status,
                {.type = "Progressing",
                 .status = "Unknown",
                 .reason = paused ? "DeploymentPaused" : "DeploymentResumed",
                 .message = paused ? "Deployment is paused" : "Deployment is resumed"},
                rollout.now());
}

}  // namespace

control::Plan plan_deployment(const control::Observed& whole, Time now) {
  // First what is its own: what it does with the sets is for the plan after that.
  control::Observed observed = whole;
  if (const auto selector = selector_of(*whole.root)) {
    control::Plan plan;
    if (!whole.seen.empty()) {
      adopt(replica_set_resource(), *whole.root, *selector, whole.seen[0], plan);
    }
    observed.owned[0] = kept(replica_set_resource(), *whole.root, *selector, whole.owned[0], plan);
    if (!plan.writes.empty()) return plan;
  }
  Rollout rollout(observed, now);
  json::object status = json::get_object(*observed.root, {"status"});
  if (api::deleting(*observed.root)) {
    tell_counts(rollout, status);
    return rollout.finish(std::move(status));
  }
  const bool paused = json::get_bool(*observed.root, {"spec", "paused"}).value_or(false);
  tell_pause(rollout, paused, status);
  // One that recreates cannot share a new size among several sets: all but one have to go first.
  const std::vector<Set*> sets = rollout.all();
  const bool torn = rollout.recreates() && std::ranges::count_if(sets, [](const Set* set) {
                                             return set->replicas() > 0;
                                           }) > 1;
  if (paused || (size_was_changed(rollout) && !torn)) return resize(rollout, std::move(status));
  return rollout.recreates() ? recreate(rollout, std::move(status))
                             : roll(rollout, std::move(status));
}

control::Controller deployment_controller() {
  return {.name = "deployment-controller",
          .root = deployment_resource(),
          .owned = {replica_set_resource()},
          .seen = {orphans(replica_set_resource())},
          .plan = plan_deployment};
}

}  // namespace skiff::workloads
