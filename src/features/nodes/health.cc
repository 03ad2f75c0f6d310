#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "api/meta.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

constexpr std::array<std::string_view, 4> kTold = {"Ready", "MemoryPressure", "DiskPressure",
                                                   "PIDPressure"};

std::string_view status_of(const json::value& node, std::string_view type) {
  const json::object* condition = api::condition(node, type);
  const json::value* status = condition == nullptr ? nullptr : condition->if_contains("status");
  return status != nullptr && status->is_string() ? json::view(status->get_string())
                                                  : std::string_view();
}

bool known(const json::value& node) {
  return std::ranges::any_of(
      kTold, [&](std::string_view type) { return status_of(node, type) != "Unknown"; });
}

// A silent node: nothing is known of it any more.
json::value without_news(json::value node, Time now) {
  for (const std::string_view type : kTold) {
    const std::string_view status = status_of(node, type);
    if (status == "Unknown") continue;
    json::object next{{"type", json::string(type)},
                      {"status", "Unknown"},
                      {"reason", status.empty() ? "NodeStatusNeverUpdated" : "NodeStatusUnknown"},
                      {"message", status.empty() ? "Kubelet never posted node status."
                                                 : "Kubelet stopped posting node status."}};
    if (status.empty()) {
      next["lastHeartbeatTime"] = json::get_string(node, {"metadata", "creationTimestamp"});
    }
    json::array conditions = with_condition(node, std::move(next), now);
    json::set(node, {"status", "conditions"}, std::move(conditions));
  }
  return node;
}

struct Wanted {
  std::string_view key = {};
  std::string_view effect = {};
  bool holds = false;
};

std::vector<Wanted> wanted_taints(const json::value& node) {
  const std::string_view ready = status_of(node, "Ready");
  const auto presses = [&](std::string_view type) { return status_of(node, type) == "True"; };
  return {
      {"node.kubernetes.io/not-ready", "NoExecute", ready == "False"},
      {"node.kubernetes.io/unreachable", "NoExecute", ready == "Unknown"},
      {"node.kubernetes.io/not-ready", "NoSchedule", ready == "False"},
      {"node.kubernetes.io/unreachable", "NoSchedule", ready == "Unknown"},
      {"node.kubernetes.io/memory-pressure", "NoSchedule", presses("MemoryPressure")},
      {"node.kubernetes.io/disk-pressure", "NoSchedule", presses("DiskPressure")},
      {"node.kubernetes.io/pid-pressure", "NoSchedule", presses("PIDPressure")},
      {"node.kubernetes.io/network-unavailable", "NoSchedule", presses("NetworkUnavailable")},
      {"node.kubernetes.io/unschedulable", "NoSchedule",
       json::get_bool(node, {"spec", "unschedulable"}).value_or(false)},
  };
}

json::array taints_of(const json::value& node, Time now) {
  std::vector<Wanted> wanted = wanted_taints(node);
  json::array out;
  for (const json::value& taint : json::get_array(node, {"spec", "taints"})) {
    bool stays = true;
    for (Wanted& one : wanted) {
      if (json::get_string(taint, {"key"}) != one.key) continue;
      if (json::get_string(taint, {"effect"}) != one.effect) continue;
      stays = std::exchange(one.holds, false);
    }
    if (stays) out.push_back(taint);
  }
  for (const Wanted& one : wanted) {
    if (!one.holds) continue;
    out.push_back(json::object{{"key", json::string(one.key)},
                               {"effect", json::string(one.effect)},
                               {"timeAdded", rfc3339(now)}});
  }
  return out;
}

}  // namespace

void watch_health(const World& world, Time now, control::GlobalPlan& plan) {
  for (const auto& [name, node] : world.nodes) {
    const auto heard = world.heard.find(name);
    const bool silent = heard != world.heard.end() && now - heard->second >= kGrace;
    // Most are as they were: those are not copied.
    const bool lost = silent && known(*node);
    const Object next = lost ? std::make_shared<const json::value>(without_news(*node, now)) : node;
    control::Batch batch;
    if (lost) {
      batch.writes.push_back(
          patch(node_resource(), *node,
                {{"status", {{"conditions", json::get_array(*next, {"status", "conditions"})}}}},
                "status"));
      batch.notes.push_back({.object = node,
                             .note = {.reason = "NodeNotReady",
                                      .message = "Node " + name + " status is now: NodeNotReady"}});
    }
    json::array taints = taints_of(*next, now);
    if (taints != json::get_array(*node, {"spec", "taints"})) {
      json::value body = taints.empty() ? json::value(nullptr) : json::value(std::move(taints));
      client::Write write =
          patch(node_resource(), *node, {{"spec", {{"taints", std::move(body)}}}});
      // The status before it, in the same transaction, has changed the revision.
      if (!batch.writes.empty()) write.resource_version.clear();
      batch.writes.push_back(std::move(write));
    }
    if (!batch.writes.empty()) plan.batches.push_back(std::move(batch));
  }
}

}  // namespace skiff::nodes
