#include "features/workloads/replica_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "api/meta.h"
#include "features/workloads/adoption.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

// One plan makes no more than this, so that a typing error does not become one huge write.
constexpr std::int64_t kReplicaSetBurst = 500;

int phase_rank(const json::value& pod) {
  const std::string_view text = phase(pod);
  return text == "Running" ? 2 : text == "Unknown" ? 1 : 0;
}

std::int64_t deletion_cost(const json::value& pod) {
  const std::string_view text = api::annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
  std::int64_t cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

std::int64_t restarts(const json::value& pod) {
  std::int64_t most = 0;
  for (const json::value& container : json::get_array(pod, {"status", "containerStatuses"})) {
    most = std::max(most, int_at(container, {"restartCount"}));
  }
  return most;
}

Time ready_since(const json::value& pod) {
  const json::object* condition = api::condition(pod, "Ready");
  if (condition == nullptr) return {};
  return parse_time(json::get_string(json::value(*condition), {"lastTransitionTime"}))
      .value_or(Time{});
}

struct Census {
  std::vector<Object> active = {};
  std::int64_t terminating = 0;
};

Census take_census(const std::vector<Object>& pods) {
  Census out;
  for (const Object& pod : pods) {
    if (active(*pod)) out.active.push_back(pod);
    if (api::deleting(*pod) && !ended(*pod)) ++out.terminating;
  }
  return out;
}

void add_pods(const control::Observed& observed, std::int64_t count, Time now,
              control::Plan& plan) {
  const json::value& root = *observed.root;
  const json::value* pod_template = json::find(root, {"spec", "template"});
  if (pod_template == nullptr) return;
  NewNames names(root, observed.owned[0], now);
  count = std::min(count, kReplicaSetBurst);
  if (observed.refused) {
    plan.notes.push_back({.warning = true,
                          .reason = "FailedCreate",
                          .message = "Error creating: " + observed.refused->message});
    count = std::min(count, static_cast<std::int64_t>(observed.refused->allowed));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = names.next(fmt::format("{}-", api::name(root)));
    plan.writes.push_back(creation(pod_resource(), root, pod_from(*pod_template, name, root)));
    plan.notes.push_back({.reason = "SuccessfulCreate", .message = "Created pod: " + name});
  }
}

void remove_pods(const std::vector<Object>& pods, std::int64_t count, control::Plan& plan) {
  std::map<std::string_view, std::size_t> on_node;
  for (const Object& pod : pods) ++on_node[json::get_string(*pod, {"spec", "nodeName"})];
  std::vector<Kinship> order;
  for (const Object& pod : pods) {
    order.push_back(
        {.pod = pod.get(), .neighbours = on_node[json::get_string(*pod, {"spec", "nodeName"})]});
  }
  std::ranges::sort(order, goes_first);
  order.resize(std::min(
      {order.size(), static_cast<std::size_t>(count), static_cast<std::size_t>(kReplicaSetBurst)}));
  for (const Kinship& doomed : order) {
    plan.writes.push_back(removal(pod_resource(), *doomed.pod));
    plan.notes.push_back({.reason = "SuccessfulDelete",
                          .message = fmt::format("Deleted pod: {}", api::name(*doomed.pod))});
  }
}

// Pods that could not be made: told as a condition until all that are missing could be.
void tell_refusal(json::object& status, const std::optional<control::Refusal>& refused, Time now) {
  json::array kept;
  bool told = false;
  if (const json::value* before = status.if_contains("conditions"); before && before->is_array()) {
    for (const json::value& condition : before->get_array()) {
      const bool is_failure = json::get_string(condition, {"type"}) == "ReplicaFailure";
      if (is_failure && !refused) continue;
      told = told || is_failure;
      kept.push_back(condition);
    }
  }
  if (refused && !told) {
    kept.push_back(json::object{{"type", "ReplicaFailure"},
                                {"status", "True"},
                                {"lastTransitionTime", rfc3339(now)},
                                {"reason", "FailedCreate"},
                                {"message", refused->message}});
  }
  if (kept.empty()) {
    status.erase("conditions");
  } else {
    status["conditions"] = std::move(kept);
  }
}

json::object new_status(const control::Observed& observed, const Census& census, bool old_kind,
                        Time now, control::Plan& plan) {
  const json::value& root = *observed.root;
  const LabelSelector of_template =
      LabelSelector::from_map(json::get_object(root, {"spec", "template", "metadata", "labels"}));
  std::int64_t labeled = 0;
  std::int64_t ready_count = 0;
  std::int64_t available = 0;
  for (const Object& pod : census.active) {
    labeled += of_template.matches_object(*pod) ? 1 : 0;
    ready_count += ready(*pod) ? 1 : 0;
    const auto wait = until_available(*pod, int_at(root, {"spec", "minReadySeconds"}), now);
    if (wait && *wait <= Duration(0)) ++available;
    if (wait && *wait > Duration(0)) sooner(plan.requeue_after, *wait);
  }
  json::object status = json::get_object(root, {"status"});
  status["replicas"] = static_cast<std::int64_t>(census.active.size());
  set_count(status, "fullyLabeledReplicas", labeled);
  set_count(status, "readyReplicas", ready_count);
  set_count(status, "availableReplicas", available);
  if (!old_kind) status["terminatingReplicas"] = census.terminating;
  tell_refusal(status, observed.refused, now);
  status["observedGeneration"] = int_at(root, {"metadata", "generation"});
  return status;
}

}  // namespace

bool goes_first(const Kinship& a, const Kinship& b) {
  const auto unassigned = [](const json::value& pod) {
    return json::get_string(pod, {"spec", "nodeName"}).empty();
  };
  if (unassigned(*a.pod) != unassigned(*b.pod)) return unassigned(*a.pod);
  if (phase_rank(*a.pod) != phase_rank(*b.pod)) return phase_rank(*a.pod) < phase_rank(*b.pod);
  if (ready(*a.pod) != ready(*b.pod)) return !ready(*a.pod);
  if (deletion_cost(*a.pod) != deletion_cost(*b.pod)) {
    return deletion_cost(*a.pod) < deletion_cost(*b.pod);
  }
  if (a.neighbours != b.neighbours) return a.neighbours > b.neighbours;
  if (ready(*a.pod) && ready_since(*a.pod) != ready_since(*b.pod)) {
    return ready_since(*a.pod) > ready_since(*b.pod);
  }
  if (restarts(*a.pod) != restarts(*b.pod)) return restarts(*a.pod) > restarts(*b.pod);
  if (api::created_at(*a.pod) != api::created_at(*b.pod)) {
    return api::created_at(*a.pod) > api::created_at(*b.pod);
  }
  return api::name(*a.pod) < api::name(*b.pod);
}

namespace {

control::Plan plan_replicas(const control::Observed& observed,
                            const std::optional<LabelSelector>& selector, bool old_kind, Time now) {
  control::Plan plan;
  const json::value& root = *observed.root;
  // The server admits none; whatever is here instead must not take every pod for its own.
  if (!selector) return plan;
  if (!observed.seen.empty()) {
    std::vector<Object> orphans = observed.seen[0];
    std::erase_if(orphans, [](const Object& pod) { return !active(*pod); });
    if (adopt(pod_resource(), root, *selector, orphans, plan)) return plan;
  }
  const Census census = take_census(kept(pod_resource(), root, *selector, observed.owned[0], plan));
  if (!api::deleting(root)) {
    const std::int64_t missing =
        int_at(root, {"spec", "replicas"}, 1) - static_cast<std::int64_t>(census.active.size());
    if (missing > 0) add_pods(observed, missing, now, plan);
    if (missing < 0) remove_pods(census.active, -missing, plan);
  }
  json::value status = new_status(observed, census, old_kind, now, plan);
  const json::value* before = json::find(root, {"status"});
  if (before == nullptr || *before != status) plan.status = std::move(status);
  return plan;
}

}  // namespace

control::Plan plan_replica_set(const control::Observed& observed, Time now) {
  return plan_replicas(observed, selector_of(*observed.root), false, now);
}

control::Controller replica_set_controller() {
  return {.name = "replicaset-controller",
          .root = replica_set_resource(),
          .owned = {pod_resource()},
          .seen = {orphans(pod_resource())},
          .hears_refusals = true,
          .plan = plan_replica_set};
}

const api::Resource& replication_controller_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "replicationcontrollers", .kind = "ReplicationController"};
  return kResource;
}

control::Controller replication_controller() {
  return {.name = "replication-controller",
          .root = replication_controller_resource(),
          .owned = {pod_resource()},
          .seen = {orphans(pod_resource(), map_selector_of)},
          .hears_refusals = true,
          .plan = [](const control::Observed& observed, Time now) {
            return plan_replicas(observed, map_selector_of(*observed.root), true, now);
          }};
}

}  // namespace skiff::workloads
