#include "scheduler/claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/core/node_selector.h"
#include "api/meta.h"

namespace skiff::scheduler {
namespace {

template <class Map, class Key>
Object at(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

bool exclusive(const json::value& claim) {
  const json::array& modes = json::get_array(claim, {"spec", "accessModes"});
  return std::ranges::find(modes, json::value("ReadWriteOncePod")) != modes.end();
}

void view_claim(const Snapshot& snapshot, const Pod& pod, const api::ClaimUse& use,
                ClaimsView& view) {
  const Object claim = at(snapshot.claims, control::Key{pod.key.ns, use.claim});
  if (claim == nullptr) {
    view.blocked = use.claim_template == nullptr
                       ? fmt::format("persistentvolumeclaim \"{}\" not found", use.claim)
                       : fmt::format(
                             "waiting for ephemeral volume controller to create the "
                             "persistentvolumeclaim \"{}\"",
                             use.claim);
    return;
  }
  if (exclusive(*claim)) view.exclusive.push_back({pod.key.ns, use.claim});
  const std::string volume_name(json::get_string(*claim, {"spec", "volumeName"}));
  const Object volume = at(snapshot.volumes, volume_name);
  if (json::get_string(*claim, {"status", "phase"}) == "Lost") {
    view.blocked =
        fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                    use.claim, volume_name);
  } else if (api::deleting(*claim)) {
    view.blocked = fmt::format("persistentvolumeclaim \"{}\" is being deleted", use.claim);
  } else if (use.claim_template != nullptr && !api::controlled_by(*claim, api::uid(*pod.object))) {
    view.blocked = fmt::format("PVC {}/{} was not created for pod {}/{} (pod is not owner)",
                               pod.key.ns, use.claim, pod.key.ns, pod.key.name);
  } else if (exclusive(*claim) && snapshot.claim_users.contains({pod.key.ns, use.claim})) {
    view.blocked = std::string(kExclusiveConflict);
  } else if (api::bound(*claim)) {
    // Bound to a volume that this cache has yet to see: a moment's matter.
    if (volume == nullptr) {
      view.coming = true;
    } else {
      view.volumes.push_back(volume);
    }
  } else {
    const Object chosen = at(snapshot.classes, std::string(api::storage_class(*claim)));
    const bool waits = volume_name.empty() && chosen != nullptr && api::waits_for_consumer(*chosen);
    if (waits && api::annotation(*claim, api::kSelectedNode).empty()) {
      view.unplaced.push_back(claim);
    } else if (waits && json::get_string(*chosen, {"provisioner"}) == api::kLocalProvisioner &&
               api::cannot_provision(*claim).empty()) {
      view.coming = true;
    } else {
      view.blocked = waits ? "node(s) didn't find available persistent volumes to bind"
                           : "pod has unbound immediate PersistentVolumeClaims";
    }
  }
}

}  // namespace

ClaimsView view_claims(const Snapshot& snapshot, const Pod& pod) {
  ClaimsView view;
  for (const api::ClaimUse& use : pod.claims) {
    if (!view.blocked) view_claim(snapshot, pod, use, view);
  }
  return view;
}

std::optional<std::string> volume_obstacle(const ClaimsView& claims, const Node& node) {
  const bool reached = std::ranges::all_of(claims.volumes, [&](const Object& volume) {
    return api::volume_reaches_node(*volume, *node.object);
  });
  if (reached) return std::nullopt;
  return "node(s) didn't match PersistentVolume's node affinity";
}

}  // namespace skiff::scheduler
