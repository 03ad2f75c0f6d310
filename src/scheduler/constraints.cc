#include "scheduler/constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/core/node_selector.h"
#include "api/meta.h"

namespace skiff::scheduler {
namespace {

bool tolerates(const json::value& pod, std::string_view key, std::string_view value,
               std::string_view effect) {
  const json::array& tolerations = json::get_array(pod, {"spec", "tolerations"});
  return std::ranges::any_of(tolerations, [&](const json::value& t) {
    const std::string_view only = json::get_string(t, {"effect"});
    if (!only.empty() && only != effect) return false;
    const std::string_view name = json::get_string(t, {"key"});
    const bool exists = json::get_string(t, {"operator"}) == "Exists";
    if (name.empty()) return exists;
    return name == key && (exists || json::get_string(t, {"value"}) == value);
  });
}

std::optional<std::string> taint_in_the_way(const Pod& pod, const Node& node) {
  for (const json::value& taint : json::get_array(*node.object, {"spec", "taints"})) {
    const std::string_view effect = json::get_string(taint, {"effect"});
    if (effect == "PreferNoSchedule") continue;
    const std::string_view key = json::get_string(taint, {"key"});
    const std::string_view value = json::get_string(taint, {"value"});
    if (tolerates(*pod.object, key, value, effect)) continue;
    return fmt::format("node(s) had untolerated taint {{{}: {}}}", key, value);
  }
  return std::nullopt;
}

bool selected(const Pod& pod, const Node& node) {
  for (const auto& [key, value] : json::get_object(*pod.object, {"spec", "nodeSelector"})) {
    const std::string_view name(key.data(), key.size());
    const json::value* label = json::find(*node.object, {"metadata", "labels", name});
    if (label == nullptr || *label != value) return false;
  }
  const json::value* required = json::find(
      *pod.object,
      {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr || !required->is_object()) return true;
  return api::selects_node(*required, *node.object);
}

}  // namespace

std::optional<std::string> obstacle(const Pod& pod, const Node& node) {
  if (!node.ready) return "node(s) were not ready";
  if (node.unschedulable &&
      !tolerates(*pod.object, "node.kubernetes.io/unschedulable", "", "NoSchedule")) {
    return "node(s) were unschedulable";
  }
  if (!selected(pod, node)) return "node(s) didn't match Pod's node affinity/selector";
  if (!node.tainted) return std::nullopt;
  return taint_in_the_way(pod, node);
}

}  // namespace skiff::scheduler
