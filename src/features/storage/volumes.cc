// The phases of volumes: free, taken, released and what comes after, and their protection.
#include <fmt/format.h>

#include "api/core/claims.h"
#include "api/meta.h"
#include "features/storage/storage.h"

namespace skiff::storage {
namespace {

constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";

std::string_view phase(const json::value& volume) {
  return json::get_string(volume, {"status", "phase"});
}

bool provisioned(const json::value& volume) {
  return api::annotation(volume, api::kProvisionedBy) == api::kLocalProvisioner;
}

void set_phase(const Object& volume, std::string_view wanted, control::GlobalPlan& plan,
               std::string message = {}) {
  if (phase(*volume) == wanted) return;
  json::object status{{"phase", json::string(wanted)}};
  control::Batch batch;
  if (!message.empty()) {
    status["message"] = message;
    batch.notes.push_back({volume, {true, "VolumeFailedDelete", std::move(message)}});
  }
  batch.writes.push_back(patch_status(volume_resource(), *volume, std::move(status)));
  plan.batches.push_back(std::move(batch));
}

// Its claim is gone. What the agent can clean up stays Released until it has; what nobody here can
// is told as failed, and kept is what the policy keeps.
void release(const Object& volume, control::GlobalPlan& plan) {
  const std::string_view policy =
      json::get_string(*volume, {"spec", "persistentVolumeReclaimPolicy"}, "Retain");
  const bool ours = provisioned(*volume) && policy == "Delete";
  if (policy == "Retain" || ours) return set_phase(volume, "Released", plan);
  if (phase(*volume) != "Failed") {
    set_phase(volume, "Failed", plan,
              policy == "Recycle"
                  ? std::string("reclaim policy Recycle is not supported: delete the volume")
                  : fmt::format("volume \"{}\" was not made by {}: its data is left where it is",
                                api::name(*volume), api::kLocalProvisioner));
  }
}

void plan_volume(const World& world, const Object& volume, control::GlobalPlan& plan) {
  const json::value* reference = json::find(*volume, {"spec", "claimRef"});
  if (reference == nullptr) return set_phase(volume, "Available", plan);
  const std::string_view uid = json::get_string(*reference, {"uid"});
  // Reserved for a claim that has not come.
  if (uid.empty()) return set_phase(volume, "Available", plan);
  const Object claim = world.claim(json::get_string(*reference, {"namespace"}),
                                   json::get_string(*reference, {"name"}));
  if (claim == nullptr || api::uid(*claim) != uid) return release(volume, plan);
  const std::string_view taken = json::get_string(*claim, {"spec", "volumeName"});
  // Its own claim, or one that is about to be: the claim's side of the plan does the rest.
  if (taken.empty() || taken == api::name(*volume)) return;
  // The claim went elsewhere.
  if (provisioned(*volume)) return release(volume, plan);
  plan.batches.push_back({.writes = {patch(volume_resource(), *volume,
                                           json::object{{"spec", {{"claimRef", nullptr}}}})}});
}

}  // namespace

void plan_volumes(const World& world, control::GlobalPlan& plan) {
  for (const auto& [name, volume] : world.volumes) {
    const std::size_t before = plan.batches.size();
    plan_volume(world, volume, plan);
    const bool quiet = plan.batches.size() == before;
    // Not in the same breath as a change of phase, which it depends on.
    if (quiet && api::deleting(*volume) && phase(*volume) != "Bound") {
      drop_finalizer(volume_resource(), volume, kVolumeProtection, plan);
    }
  }
}

}  // namespace skiff::storage
