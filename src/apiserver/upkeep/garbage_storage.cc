// Claims that pods use and volumes that claims use outlive their deletion; here they are let go.
#include <algorithm>

#include "api/core/claims.h"
#include "apiserver/upkeep/garbage.h"

namespace skiff::apiserver {

bool Collector::release_storage(const store::Key& key) {
  const std::vector<std::string>& finalizers = nodes_.at(key).finalizers;
  const auto held_by = [&](std::string_view finalizer) {
    return std::ranges::find(finalizers, finalizer) != finalizers.end();
  };
  if (key.resource == "persistentvolumes" && held_by("kubernetes.io/pv-protection")) {
    const store::EntryPtr volume = store_.get(key);
    if (!volume || json::get_string(*volume->value(), {"status", "phase"}) == "Bound") return false;
    return remove_finalizer(key, "kubernetes.io/pv-protection");
  }
  if (key.resource != "persistentvolumeclaims" || !held_by("kubernetes.io/pvc-protection")) {
    return false;
  }
  for (const store::EntryPtr& pod : store_.list("pods", key.ns).entries) {
    if (!api::holds_claim(*pod->value(), key.name)) continue;
    used_claims_.insert(key);
    return false;
  }
  return remove_finalizer(key, "kubernetes.io/pvc-protection");
}

}  // namespace skiff::apiserver
