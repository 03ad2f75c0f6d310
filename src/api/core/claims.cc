#include "api/core/claims.h"

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
