// What a pod says about nodes without having said it: how long it stays on a lost one, and what its
// runtime class adds.
#include <fmt/format.h>

#include <algorithm>

#include "apiserver/admission/amounts.h"
#include "apiserver/admission/rules.h"

namespace skiff::apiserver {
namespace {

constexpr int kTolerationSeconds = 300;

bool tolerates(const json::value& pod, std::string_view taint) {
  return std::ranges::any_of(json::get_array(pod, {"spec", "tolerations"}), [&](const auto& t) {
    const std::string_view key = json::get_string(t, {"key"});
    const std::string_view effect = json::get_string(t, {"effect"});
    return (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
  });
}

json::array& tolerations(json::value& pod) {
  json::value& list = json::make_object(pod, {"spec"})["tolerations"];
  return list.is_array() ? list.get_array() : list.emplace_array();
}

Result<void> add_scheduling(const AdmissionRequest& request, const json::value& scheduling) {
  for (const auto& [key, value] : json::get_object(scheduling, {"nodeSelector"})) {
    json::object& selector = json::make_object(request.object, {"spec", "nodeSelector"});
    const auto [at, fresh] = selector.emplace(key, value);
    if (fresh || at->value() == value) continue;
    const auto text = [](const json::value& v) {
      return v.is_string() ? std::string(json::view(v.get_string())) : json::serialize(v);
    };
    const std::string_view name = key;
    return std::unexpected(refused_unnamed(
        request, fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                             "pod.spec.nodeSelector[{}] = {}",
                             name, text(value), name, text(at->value()))));
  }
  for (const json::value& toleration : json::get_array(scheduling, {"tolerations"})) {
    json::array& list = tolerations(request.object);
    if (std::ranges::count(list, toleration) == 0) list.push_back(toleration);
  }
  return {};
}

}  // namespace

void tolerate_lost_nodes(const AdmissionRequest& request) {
  if (!request.plain("pods")) return;
  for (std::string_view taint :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    if (tolerates(request.object, taint)) continue;
    tolerations(request.object)
        .push_back(json::object{{"key", json::string(taint)},
                                {"operator", "Exists"},
                                {"effect", "NoExecute"},
                                {"tolerationSeconds", kTolerationSeconds}});
  }
}

Result<void> apply_runtime_class(const AdmissionRequest& request) {
  if (!request.plain("pods") || !request.creates()) return {};
  const std::string name(json::get_string(request.object, {"spec", "runtimeClassName"}));
  Object chosen;
  if (!name.empty()) {
    chosen = request.txn.get({.resource = "runtimeclasses.node.k8s.io", .name = name});
    if (chosen == nullptr) {
      return std::unexpected(refused_unnamed(
          request, fmt::format("pod rejected: RuntimeClass \"{}\" not found", name)));
    }
  }
  const json::value* given = json::find(request.object, {"spec", "overhead"});
  const json::value* fixed =
      chosen == nullptr ? nullptr : json::find(*chosen, {"overhead", "podFixed"});
  if (fixed == nullptr && given != nullptr && !given->is_null()) {
    return std::unexpected(refused_unnamed(
        request,
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"));
  }
  if (fixed != nullptr) {
    const Amounts wanted = read_amounts(json::get_object(request.object, {"spec", "overhead"}));
    if (!wanted.empty() && wanted != read_amounts(json::get_object(*fixed, {}))) {
      return std::unexpected(refused_unnamed(
          request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
    }
    json::set(request.object, {"spec", "overhead"}, *fixed);
  }
  const json::value* scheduling = chosen == nullptr ? nullptr : json::find(*chosen, {"scheduling"});
  return scheduling == nullptr ? Result<void>() : add_scheduling(request, *scheduling);
}

}  // namespace skiff::apiserver
