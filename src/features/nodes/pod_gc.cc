#include <algorithm>
#include <tuple>

#include "api/meta.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

bool over(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

// Nobody is left who could say how it ended.
control::Batch burial(const Object& pod, Time now) {
  control::Batch batch;
  if (!over(*pod)) {
    json::object target{{"type", "DisruptionTarget"},
                        {"status", "True"},
                        {"reason", "DeletionByPodGC"},
                        {"message", "PodGC: node no longer exists"}};
    batch.writes.push_back(patch(
        pod_resource(), *pod,
        {{"status",
          {{"phase", "Failed"}, {"conditions", with_condition(*pod, std::move(target), now)}}}},
        "status"));
  }
  batch.writes.push_back(removal(*pod, true));
  return batch;
}

void collect_ended(const World& world, control::GlobalPlan& plan) {
  if (world.ended.size() <= kEndedPods) return;
  std::vector<Object> pods;
  for (const auto& [node, list] : world.pods) {
    for (const auto& [name, pod] : list) {
      if (over(*pod)) pods.push_back(pod);
    }
  }
  const auto rank = [](const Object& pod) {
    const bool evicted = json::get_string(*pod, {"status", "phase"}) == "Failed" &&
                         json::get_string(*pod, {"status", "reason"}) == "Evicted";
    return std::tuple(!evicted, api::created_at(*pod), api::name(*pod));
  };
  std::ranges::sort(pods, {}, rank);
  pods.resize(pods.size() - kEndedPods);
  for (const Object& pod : pods) {
    plan.batches.push_back({.writes = {removal(*pod, true)}});
  }
}

}  // namespace

void collect_pods(const World& world, Time now, control::GlobalPlan& plan) {
  for (const auto& [node, missing_since] : world.missing) {
    const Duration left = missing_since + kGrace - now;
    if (left > Duration(0)) {
      again_in(plan, left);
      continue;
    }
    const auto pods = world.pods.find(node);
    if (pods == world.pods.end()) continue;
    for (const auto& [name, pod] : pods->second) plan.batches.push_back(burial(pod, now));
  }
  if (const auto waiting = world.pods.find(std::string_view()); waiting != world.pods.end()) {
    for (const auto& [name, pod] : waiting->second) {
      if (api::deleting(*pod) && json::get_array(*pod, {"metadata", "finalizers"}).empty()) {
        plan.batches.push_back({.writes = {removal(*pod, true)}});
      }
    }
  }
  collect_ended(world, plan);
}

}  // namespace skiff::nodes
