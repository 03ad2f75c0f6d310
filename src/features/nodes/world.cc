#include "features/nodes/world.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "features/nodes/nodes.h"

namespace skiff::nodes {
namespace {

PodName name_of(const json::value& pod) {
  return {std::string(api::ns(pod)), std::string(api::name(pod))};
}

bool ended(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

Ended ended_pod(const json::value& pod) {
  return {
      .uid = std::string(api::uid(pod)),
      .created = api::created_at(pod),
      .evicted = json::get_string(pod, {"status", "phase"}) == "Failed" &&
                 json::get_string(pod, {"status", "reason"}) == "Evicted",
      .leaving = api::deleting(pod) && json::get_array(pod, {"metadata", "finalizers"}).empty()};
}

void remove(auto& by_node, std::string_view node, const PodName& name) {
  const auto there = by_node.find(node);
  if (there == by_node.end()) return;
  there->second.erase(name);
  if (there->second.empty()) by_node.erase(there);
}

// Dates what is new, keeps the date of what is not, forgets the rest.
void date(std::map<std::string, Time, std::less<>>& dates, const std::set<std::string>& there,
          Time now) {
  std::erase_if(dates, [&](const auto& entry) { return !there.contains(entry.first); });
  for (const std::string& key : there) dates.emplace(key, now);
}

}  // namespace

const api::Resource& node_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  return kResource;
}
const api::Resource& lease_resource() {
  static const api::Resource kResource{
      .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
  return kResource;
}
const api::Resource& pod_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "pods", .kind = "Pod"};
  return kResource;
}

std::string taint_key(const json::value& node, const json::value& taint) {
  return fmt::format("{}/{}={}:{}", api::uid(node), json::get_string(taint, {"key"}),
                     json::get_string(taint, {"value"}), json::get_string(taint, {"effect"}));
}

std::vector<api::Resource> Books::watched() {
  return {node_resource(), lease_resource(), pod_resource()};
}

void Books::changed(std::size_t which, const Object& before, const Object& after) {
  if (which == 2) return pod_changed(before, after);
  const json::value& object = after != nullptr ? *after : *before;
  if (which == 1 && api::ns(object) != "kube-node-lease") return;
  auto& table = which == 0 ? world_.nodes : leases_;
  if (after != nullptr) {
    table[std::string(api::name(object))] = after;
  } else {
    table.erase(std::string(api::name(object)));
  }
}

void Books::pod_changed(const Object& before, const Object& after) {
  if (before != nullptr) {
    const std::string_view node = json::get_string(*before, {"spec", "nodeName"});
    remove(world_.pods, node, name_of(*before));
    remove(world_.ended, node, name_of(*before));
  }
  if (after == nullptr) return;
  const std::string node(json::get_string(*after, {"spec", "nodeName"}));
  if (ended(*after)) {
    world_.ended[node][name_of(*after)] = ended_pod(*after);
  } else {
    world_.pods[node][name_of(*after)] = after;
  }
}

void Books::date_heartbeats(Time now, bool slept) {
  std::set<std::string> there;
  for (const auto& [name, node] : world_.nodes) {
    there.insert(name);
    const auto lease = leases_.find(name);
    std::string beat = fmt::format(
        "{} {}", api::uid(*node),
        lease == leases_.end() ? "" : json::get_string(*lease->second, {"spec", "renewTime"}));
    for (const json::value& condition : json::get_array(*node, {"status", "conditions"})) {
      beat += json::get_string(condition, {"lastHeartbeatTime"});
    }
    std::string& known = beats_[name];
    if (known != beat || slept) world_.heard[name] = now;
    known = std::move(beat);
  }
  date(world_.heard, there, now);
  std::erase_if(beats_, [&](const auto& entry) { return !there.contains(entry.first); });
}

const World& Books::look(Time now) {
  // Who did not look cannot tell who was silent: after a standstill everybody gets time again.
  const bool slept = !last_look_ || now - *last_look_ > 2 * kPeriod;
  if (slept) {
    world_.awake = now;
    world_.missing.clear();
    world_.tainted.clear();
  }
  date_heartbeats(now, slept);
  std::set<std::string> missing;
  const auto look_for = [&](const auto& by_node) {
    for (const auto& [node, pods] : by_node) {
      if (!node.empty() && !world_.nodes.contains(node)) missing.insert(node);
    }
  };
  look_for(world_.pods);
  look_for(world_.ended);
  date(world_.missing, missing, now);
  std::set<std::string> taints;
  for (const auto& [name, node] : world_.nodes) {
    for (const json::value& taint : json::get_array(*node, {"spec", "taints"})) {
      taints.insert(taint_key(*node, taint));
    }
  }
  date(world_.tainted, taints, now);
  last_look_ = now;
  return world_;
}

}  // namespace skiff::nodes
