#include "api/core/taints.h"

#include <algorithm>

#include "api/core/node_selector.h"

namespace skiff::api {
namespace {

bool tolerates(const json::value& toleration, const json::value& taint) {
  const std::string_view effect = json::get_string(toleration, {"effect"});
  if (!effect.empty() && effect != json::get_string(taint, {"effect"})) return false;
  const std::string_view key = json::get_string(toleration, {"key"});
  const bool exists = json::get_string(toleration, {"operator"}) == "Exists";
  if (key.empty()) return exists;
  if (key != json::get_string(taint, {"key"})) return false;
  return exists || json::get_string(toleration, {"value"}) == json::get_string(taint, {"value"});
}

}  // namespace

std::vector<const json::value*> tolerations_of(const json::value& pod, const json::value& taint) {
  std::vector<const json::value*> out;
  for (const json::value& toleration : json::get_array(pod, {"spec", "tolerations"})) {
    if (tolerates(toleration, taint)) out.push_back(&toleration);
  }
  return out;
}

bool tolerates_all(const json::value& pod, const json::value& node, std::string_view effect) {
  return std::ranges::all_of(json::get_array(node, {"spec", "taints"}), [&](const json::value& t) {
    return json::get_string(t, {"effect"}) != effect || !tolerations_of(pod, t).empty();
  });
}

bool admits_node(const json::value& pod, const json::value& node) {
  for (const auto& [key, value] : json::get_object(pod, {"spec", "nodeSelector"})) {
    const json::value* label =
        json::find(node, {"metadata", "labels", std::string_view(key.data(), key.size())});
    if (label == nullptr || *label != value) return false;
  }
  const json::value* required = json::find(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  return required == nullptr || !required->is_object() || selects_node(*required, node);
}

}  // namespace skiff::api
