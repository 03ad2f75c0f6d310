#include "features/workloads/daemon_nodes.h"

#include <utility>

#include "api/core/taints.h"
#include "api/meta.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

// Replaces a toleration of the same taint, as Kubernetes does.
void tolerate(json::array& tolerations, std::string_view key, std::string_view effect) {
  json::object wanted{
      {"key", json::string(key)}, {"operator", "Exists"}, {"effect", json::string(effect)}};
  for (json::value& known : tolerations) {
    if (json::get_string(known, {"key"}) != key || json::get_string(known, {"effect"}) != effect ||
        json::get_string(known, {"operator"}) != "Exists") {
      continue;
    }
    known = std::move(wanted);
    return;
  }
  tolerations.push_back(std::move(wanted));
}

}  // namespace

const api::Resource& node_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  return kResource;
}

json::value daemon_template(const json::value& set) {
  json::value out = json::get_object(set, {"spec", "template"});
  json::object& spec = json::make_object(out, {"spec"});
  json::array tolerations = json::get_array(out, {"spec", "tolerations"});
  tolerate(tolerations, "node.kubernetes.io/not-ready", "NoExecute");
  tolerate(tolerations, "node.kubernetes.io/unreachable", "NoExecute");
  tolerate(tolerations, "node.kubernetes.io/disk-pressure", "NoSchedule");
  tolerate(tolerations, "node.kubernetes.io/memory-pressure", "NoSchedule");
  tolerate(tolerations, "node.kubernetes.io/pid-pressure", "NoSchedule");
  tolerate(tolerations, "node.kubernetes.io/unschedulable", "NoSchedule");
  if (json::get_bool(out, {"spec", "hostNetwork"}).value_or(false)) {
    tolerate(tolerations, "node.kubernetes.io/network-unavailable", "NoSchedule");
  }
  spec["tolerations"] = std::move(tolerations);
  return out;
}

void pin(json::value& pod, std::string_view node) {
  json::object field{
      {"key", "metadata.name"}, {"operator", "In"}, {"values", json::array{json::string(node)}}};
  json::set(pod, {"spec", "affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"},
            json::array{json::object{{"matchFields", json::array{std::move(field)}}}});
}

std::string target_node(const json::value& pod) {
  const std::string_view bound = json::get_string(pod, {"spec", "nodeName"});
  if (!bound.empty()) return std::string(bound);
  for (const json::value& term :
       json::get_array(pod, {"spec", "affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"})) {
    for (const json::value& field : json::get_array(term, {"matchFields"})) {
      const json::array& values = json::get_array(field, {"values"});
      if (json::get_string(field, {"key"}) == "metadata.name" && values.size() == 1 &&
          values[0].is_string()) {
        return std::string(json::view(values[0].get_string()));
      }
    }
  }
  return {};
}

Welcome welcome(const json::value& daemon_template, const json::value& node) {
  const std::string_view only = json::get_string(daemon_template, {"spec", "nodeName"});
  if (!only.empty() && only != api::name(node)) return {};
  if (!api::admits_node(daemon_template, node)) return {};
  const bool stays = api::tolerates_all(daemon_template, node, "NoExecute");
  return {.runs = stays && api::tolerates_all(daemon_template, node, "NoSchedule"), .stays = stays};
}

bool alike_to_daemons(const json::value& before, const json::value& after) {
  const auto same = [&](std::string_view part, std::string_view field) {
    const json::value* was = json::find(before, {part, field});
    const json::value* is = json::find(after, {part, field});
    return was == nullptr || is == nullptr ? was == is : *was == *is;
  };
  return same("metadata", "uid") && same("metadata", "labels") &&
         same("metadata", "deletionTimestamp") && same("spec", "taints") &&
         same("spec", "unschedulable");
}

}  // namespace skiff::workloads
