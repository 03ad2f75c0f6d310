#include <algorithm>
#include <tuple>

#include "api/meta.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

// Nobody is left who could say how it ended.
control::Batch burial(const Object& pod, Time now) {
  control::Batch batch;
  json::object target{{"type", "DisruptionTarget"},
                      {"status", "True"},
                      {"reason", "DeletionByPodGC"},
                      {"message", "PodGC: node no longer exists"}};
  batch.writes.push_back(
      patch(pod_resource(), *pod,
            {{"status",
              {{"phase", "Failed"}, {"conditions", with_condition(*pod, std::move(target), now)}}}},
            "status"));
  batch.writes.push_back(removal(*pod, true));
  return batch;
}

void remove_ended(const EndedPods::value_type& pod, control::GlobalPlan& plan) {
  plan.batches.push_back({.writes = {removal(pod.first, pod.second.uid, true)}});
}

void collect_ended(const World& world, control::GlobalPlan& plan) {
  std::size_t count = 0;
  for (const auto& [node, list] : world.ended) count += list.size();
  if (count <= kEndedPods) return;
  std::vector<const EndedPods::value_type*> pods;
  pods.reserve(count);
  for (const auto& [node, list] : world.ended) {
    for (const auto& pod : list) pods.push_back(&pod);
  }
  const auto rank = [](const EndedPods::value_type* pod) {
    return std::tuple(!pod->second.evicted, pod->second.created,
                      std::string_view(pod->first.second));
  };
  std::ranges::sort(pods, {}, rank);
  pods.resize(count - kEndedPods);
  for (const EndedPods::value_type* pod : pods) remove_ended(*pod, plan);
}

// Of a node that is gone.
void bury(const World& world, const std::string& node, Time now, control::GlobalPlan& plan) {
  if (const auto pods = world.pods.find(node); pods != world.pods.end()) {
    for (const auto& [name, pod] : pods->second) plan.batches.push_back(burial(pod, now));
  }
  if (const auto pods = world.ended.find(node); pods != world.ended.end()) {
    for (const auto& pod : pods->second) remove_ended(pod, plan);
  }
}

// Those that never had a node: nobody else ends them.
void collect_waiting(const World& world, control::GlobalPlan& plan) {
  if (const auto waiting = world.pods.find(std::string_view()); waiting != world.pods.end()) {
    for (const auto& [name, pod] : waiting->second) {
      if (api::deleting(*pod) && json::get_array(*pod, {"metadata", "finalizers"}).empty()) {
        plan.batches.push_back({.writes = {removal(*pod, true)}});
      }
    }
  }
  if (const auto ended = world.ended.find(std::string_view()); ended != world.ended.end()) {
    for (const auto& pod : ended->second) {
      if (pod.second.leaving) remove_ended(pod, plan);
    }
  }
}

}  // namespace

void collect_pods(const World& world, Time now, control::GlobalPlan& plan) {
  for (const auto& [node, missing_since] : world.missing) {
    const Duration left = missing_since + kGrace - now;
    if (left > Duration(0)) {
      again_in(plan, left);
    } else {
      bury(world, node, now, plan);
    }
  }
  collect_waiting(world, plan);
  collect_ended(world, plan);
}

}  // namespace skiff::nodes
