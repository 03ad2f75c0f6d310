#include "features/storage/matching.h"

#include <algorithm>

#include "api/core/claims.h"
#include "api/core/node_selector.h"
#include "api/meta.h"
#include "base/selectors.h"

namespace skiff::storage {
namespace {

Quantity amount(const json::value& object, std::initializer_list<std::string_view> path) {
  const json::value* given = json::find(object, path);
  return given == nullptr ? Quantity() : Quantity::from_json(*given).value_or(Quantity());
}

std::string_view mode(const json::value& object) {
  return json::get_string(object, {"spec", "volumeMode"}, "Filesystem");
}

bool grants(const json::value& volume, const json::value& claim) {
  const json::array& offered = json::get_array(volume, {"spec", "accessModes"});
  return std::ranges::all_of(json::get_array(claim, {"spec", "accessModes"}),
                             [&](const json::value& wanted) {
                               return std::ranges::find(offered, wanted) != offered.end();
                             });
}

bool selected(const json::value& volume, const json::value& claim) {
  const json::value* selector = json::find(claim, {"spec", "selector"});
  if (selector == nullptr || !selector->is_object()) return true;
  const auto parsed = LabelSelector::from_object(*selector);
  return parsed && parsed->matches_object(volume);
}

}  // namespace

Quantity requested(const json::value& claim) {
  return amount(claim, {"spec", "resources", "requests", "storage"});
}

Quantity capacity(const json::value& volume) {
  return amount(volume, {"spec", "capacity", "storage"});
}

bool claimed_by(const json::value& volume, const json::value& claim) {
  const std::string_view uid = json::get_string(volume, {"spec", "claimRef", "uid"});
  return json::get_string(volume, {"spec", "claimRef", "name"}) == api::name(claim) &&
         json::get_string(volume, {"spec", "claimRef", "namespace"}) == api::ns(claim) &&
         (uid.empty() || uid == api::uid(claim));
}

std::optional<std::string> mismatch(const json::value& volume, const json::value& claim) {
  if (api::deleting(volume)) {
    return "the volume is marked for deletion \"" + std::string(api::name(volume)) + "\"";
  }
  if (capacity(volume) < requested(claim)) return "requested PV is too small";
  if (api::storage_class(volume) != api::storage_class(claim)) {
    return "storageClassName does not match";
  }
  if (mode(volume) != mode(claim)) return "incompatible volumeMode";
  if (!grants(volume, claim)) return "incompatible accessMode";
  return std::nullopt;
}

Object best_volume(const World& world, const json::value& claim, bool waits, const Object& node,
                   const std::set<std::string, std::less<>>& taken) {
  const auto reserved =
      world.reserved.find({std::string(api::ns(claim)), std::string(api::name(claim))});
  if (reserved != world.reserved.end()) {
    for (const auto& [name, volume] : reserved->second) {
      const bool fits = capacity(*volume) >= requested(claim) && mode(*volume) == mode(claim);
      if (claimed_by(*volume, claim) && fits && !api::deleting(*volume)) return volume;
    }
  }
  const auto free = world.free.find(api::storage_class(claim));
  if (waits || free == world.free.end()) return nullptr;
  Object best;
  for (const auto& [name, volume] : free->second) {
    if (taken.contains(name.second) || mismatch(*volume, claim) || !selected(*volume, claim)) {
      continue;
    }
    if (json::get_string(*volume, {"status", "phase"}) != "Available") continue;
    if (node != nullptr && !api::volume_reaches_node(*volume, *node)) continue;
    if (best == nullptr || capacity(*volume) < capacity(*best)) best = volume;
  }
  return best;
}

}  // namespace skiff::storage
