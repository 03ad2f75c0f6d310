#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/core/taints.h"
#include "api/meta.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

// A pod from before the server gave every pod its tolerations of a lost node has them all the same.
constexpr Duration kUsual = std::chrono::seconds(300);

bool tells_of_loss(const json::value& taint) {
  const std::string_view key = json::get_string(taint, {"key"});
  return key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable";
}

// Not when the taint says it was added: nobody knows how the node fared while this process stood
// still.
Time since(const World& world, const json::value& node, const json::value& taint, Time now) {
  const auto seen = world.tainted.find(taint_key(node, taint));
  return seen == world.tainted.end() ? now : seen->second;
}

// When the pod has to go; nothing: it may stay.
std::optional<Time> deadline(const World& world, const json::value& node, const json::value& pod,
                             Time now) {
  std::optional<Time> out;
  const auto by = [&](Time at) { out = std::min(out.value_or(at), at); };
  for (const json::value& taint : json::get_array(node, {"spec", "taints"})) {
    if (json::get_string(taint, {"effect"}) != "NoExecute") continue;
    const auto tolerations = api::tolerations_of(pod, taint);
    const bool lost = tells_of_loss(taint);
    if (tolerations.empty()) by(lost ? since(world, node, taint, now) + kUsual : now);
    for (const json::value* toleration : tolerations) {
      const auto seconds = json::get_int(*toleration, {"tolerationSeconds"});
      if (!seconds) continue;
      const auto wait = std::chrono::seconds(std::max<std::int64_t>(0, *seconds));
      const Time at = since(world, node, taint, now) + wait;
      by(lost ? std::max(at, world.awake + kGrace) : at);  // first it may say that it is back
    }
  }
  return out;
}

control::Batch eviction(const Object& pod, Time now) {
  control::Batch batch;
  json::object target{{"type", "DisruptionTarget"},
                      {"status", "True"},
                      {"reason", "DeletionByTaintManager"},
                      {"message", "Taint manager: deleting due to NoExecute taint"}};
  batch.writes.push_back(patch(
      pod_resource(), *pod,
      {{"status", {{"conditions", with_condition(*pod, std::move(target), now)}}}}, "status"));
  batch.writes.push_back(removal(*pod, false));
  batch.notes.push_back({.object = pod,
                         .note = {.reason = "TaintManagerEviction",
                                  .message = fmt::format("Marking for deletion Pod {}/{}",
                                                         api::ns(*pod), api::name(*pod))}});
  return batch;
}

// Nobody knows whether it still serves: it gets no more requests. A node that says otherwise after
// it was lost is on its way back.
void call_unready(const Object& pod, const json::object& lost, Time now,
                  control::GlobalPlan& plan) {
  if (!api::condition_true(*pod, "Ready")) return;
  const auto said =
      api::time_at(json::value(*api::condition(*pod, "Ready")), {"lastTransitionTime"});
  const auto since = api::time_at(json::value(lost), {"lastTransitionTime"});
  if (said && since && *said >= *since) return;
  control::Batch batch;
  json::object unready{{"type", "Ready"}, {"status", "False"}};
  batch.writes.push_back(patch(
      pod_resource(), *pod,
      {{"status", {{"conditions", with_condition(*pod, std::move(unready), now)}}}}, "status"));
  batch.notes.push_back(
      {.object = pod,
       .note = {.warning = true, .reason = "NodeNotReady", .message = "Node is not ready"}});
  plan.batches.push_back(std::move(batch));
}

bool drives_away(const json::value& node) {
  return std::ranges::any_of(json::get_array(node, {"spec", "taints"}), [](const json::value& t) {
    return json::get_string(t, {"effect"}) == "NoExecute";
  });
}

}  // namespace

void evict(const World& world, Time now, control::GlobalPlan& plan) {
  for (const auto& [name, node] : world.nodes) {
    const json::object* ready = api::condition(*node, "Ready");
    const bool lost =
        ready != nullptr && json::get_string(json::value(*ready), {"status"}) == "Unknown";
    if (!lost && !drives_away(*node)) continue;
    const auto pods = world.pods.find(name);
    if (pods == world.pods.end()) continue;
    for (const auto& [key, pod] : pods->second) {
      if (api::deleting(*pod)) continue;
      const auto limit = deadline(world, *node, *pod, now);
      if (limit && *limit <= now) {
        plan.batches.push_back(eviction(pod, now));
        continue;
      }
      if (limit) again_in(plan, *limit - now);
      if (lost) call_unready(pod, *ready, now, plan);
    }
  }
}

}  // namespace skiff::nodes
