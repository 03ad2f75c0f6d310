#include "scheduler/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// `actual` is null where the node has no such label.
bool requirement_holds(const json::value& requirement, const std::string_view* actual) {
  const std::string_view op = json::get_string(requirement, {"operator"});
  const json::array& values = json::get_array(requirement, {"values"});
  const bool listed = actual != nullptr && std::ranges::any_of(values, [&](const json::value& v) {
                        return v.is_string() && json::view(v.get_string()) == *actual;
                      });
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return actual != nullptr;
  if (op == "DoesNotExist") return actual == nullptr;
  if ((op == "Gt" || op == "Lt") && actual != nullptr && values.size() == 1 &&
      values[0].is_string()) {
    const auto left = integer(*actual);
    const auto right = integer(json::view(values[0].get_string()));
    return left && right && (op == "Gt" ? *left > *right : *left < *right);
  }
  return false;
}

bool term_holds(const json::value& term, const Node& node) {
  const json::object& labels = json::get_object(*node.object, {"metadata", "labels"});
  const auto label_holds = [&](const json::value& requirement) {
    const json::value* found = labels.if_contains(json::get_string(requirement, {"key"}));
    if (found == nullptr || !found->is_string()) return requirement_holds(requirement, nullptr);
    const std::string_view text = json::view(found->get_string());
    return requirement_holds(requirement, &text);
  };
  const auto field_holds = [&](const json::value& requirement) {
    const std::string_view name = node.name;
    return json::get_string(requirement, {"key"}) == "metadata.name" &&
           requirement_holds(requirement, &name);
  };
  const json::array& expressions = json::get_array(term, {"matchExpressions"});
  const json::array& fields = json::get_array(term, {"matchFields"});
  // Kubernetes lets an empty term match nothing.
  if (expressions.empty() && fields.empty()) return false;
  return std::ranges::all_of(expressions, label_holds) && std::ranges::all_of(fields, field_holds);
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
  return std::ranges::any_of(json::get_array(*required, {"nodeSelectorTerms"}),
                             [&](const json::value& term) { return term_holds(term, node); });
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
