#include "api/core/claims.h"

#include <algorithm>

#include "api/meta.h"

namespace skiff::api {

std::vector<ClaimUse> claims_of(const json::value& pod) {
  std::vector<ClaimUse> out;
  for (const json::value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const std::string name(json::get_string(volume, {"name"}));
    if (const json::value* claim = json::find(volume, {"persistentVolumeClaim"})) {
      out.push_back({.volume = name,
                     .claim = std::string(json::get_string(*claim, {"claimName"})),
                     .read_only = json::get_bool(*claim, {"readOnly"}).value_or(false)});
    } else if (const json::value* made = json::find(volume, {"ephemeral", "volumeClaimTemplate"})) {
      out.push_back({.volume = name,
                     .claim = std::string(api::name(pod)) + "-" + name,
                     .claim_template = made});
    }
  }
  return out;
}

bool holds_claim(const json::value& pod, std::string_view claim) {
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) return false;
  const bool shut_down =
      deleting(pod) && json::get_int(pod, {"metadata", "deletionGracePeriodSeconds"}) == 0;
  return std::ranges::any_of(claims_of(pod), [&](const ClaimUse& use) {
    return use.claim == claim && (use.claim_template == nullptr || !shut_down);
  });
}

std::string_view cannot_provision(const json::value& claim) {
  if (json::find(claim, {"spec", "selector"}) != nullptr) {
    return "claim.Spec.Selector is not supported";
  }
  if (json::get_string(claim, {"spec", "volumeMode"}, "Filesystem") != "Filesystem") {
    return "only volumes of mode Filesystem can be made";
  }
  for (const std::string_view source : {"dataSource", "dataSourceRef"}) {
    if (json::find(claim, {"spec", source}) != nullptr) {
      return "a new volume cannot be filled from a data source";
    }
  }
  return {};
}

std::string_view storage_class(const json::value& object) {
  const std::string_view old = annotation(object, "volume.beta.kubernetes.io/storage-class");
  return old.empty() ? json::get_string(object, {"spec", "storageClassName"}) : old;
}

bool bound(const json::value& claim) {
  return !annotation(claim, kBindCompleted).empty() &&
         json::get_string(claim, {"status", "phase"}) == "Bound";
}

bool waits_for_consumer(const json::value& storage_class) {
  return json::get_string(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
}

}  // namespace skiff::api
