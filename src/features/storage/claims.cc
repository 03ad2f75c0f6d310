// A claim's way to its volume, and the claims of ephemeral volumes.
#include "api/core/claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "features/storage/matching.h"
#include "features/storage/storage.h"

namespace skiff::storage {
namespace {

constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
constexpr std::string_view kDefaultClass = "storageclass.kubernetes.io/is-default-class";
constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";

json::object claim_reference(const json::value& claim) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"namespace", json::string(api::ns(claim))},
          {"name", json::string(api::name(claim))},
          {"uid", json::string(api::uid(claim))},
          {"resourceVersion", json::string(api::resource_version(claim))}};
}

bool in_use(const World& world, const Name& claim) {
  const auto users = world.users.find(claim);
  return users != world.users.end() && std::ranges::any_of(users->second, [&](const auto& user) {
           return api::holds_claim(*user.second, claim.second);
         });
}

class Claims {
 public:
  Claims(const World& world, const StorageOptions& options, control::GlobalPlan& plan)
      : world_(world), options_(options), plan_(plan) {}

  void run() {
    for (const auto& [name, claim] : world_.claims) {
      if (api::deleting(*claim)) {
        if (!in_use(world_, name)) drop_finalizer(claim_resource(), claim, kClaimProtection, plan_);
      } else if (!api::annotation(*claim, api::kBindCompleted).empty()) {
        keep_bound(claim);
      } else if (const auto wish = json::get_string(*claim, {"spec", "volumeName"});
                 !wish.empty()) {
        bind_to(claim, world_.volume(wish));
      } else {
        find_volume(claim);
      }
    }
  }

 private:
  void tell(const Object& claim, bool warning, std::string reason, std::string message) {
    plan_.batches.push_back({.notes = {{claim, {warning, std::move(reason), std::move(message)}}}});
  }

  void lose(const Object& claim, std::string reason, std::string message) {
    if (json::get_string(*claim, {"status", "phase"}) == "Lost") return;
    plan_.batches.push_back(
        {.writes = {patch_status(claim_resource(), *claim, json::object{{"phase", "Lost"}})},
         .notes = {{claim, {true, std::move(reason), std::move(message)}}}});
  }

  void keep_bound(const Object& claim) {
    const std::string_view name = json::get_string(*claim, {"spec", "volumeName"});
    const Object volume = world_.volume(name);
    if (name.empty()) {
      return lose(
          claim, "ClaimLost",
          "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    }
    if (volume == nullptr) {
      return lose(claim, "ClaimLost",
                  "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    }
    const bool free = json::find(*volume, {"spec", "claimRef"}) == nullptr;
    if (free || claimed_by(*volume, *claim)) {
      return wants_growth(*claim, *volume) ? grow(claim, volume) : bind(claim, volume, {});
    }
    lose(claim, "ClaimMisbound",
         "Two claims are bound to the same volume, this one is bound incorrectly");
  }

  // A folder has room for what its disk has room for: to grow is to say so. The server has seen to
  // it that the class allows it; the claim's status follows the volume.
  static bool wants_growth(const json::value& claim, const json::value& volume) {
    return api::annotation(volume, api::kProvisionedBy) == api::kLocalProvisioner &&
           capacity(volume) < requested(claim) && !api::deleting(volume);
  }

  void grow(const Object& claim, const Object& volume) {
    json::object room{{"storage", json::string(requested(*claim).text())}};
    plan_.batches.push_back(
        {.writes = {patch(volume_resource(), *volume,
                          json::object{{"spec", {{"capacity", std::move(room)}}}})},
         .notes = {{claim, {false, "VolumeResizeSuccessful", "Resize volume succeeded"}}}});
  }

  // The claim names its volume itself.
  void bind_to(const Object& claim, const Object& volume) {
    if (volume == nullptr) return;
    if (claimed_by(*volume, *claim)) return bind(claim, volume, {});
    if (json::find(*volume, {"spec", "claimRef"}) != nullptr ||
        taken_.contains(api::name(*volume))) {
      return tell(
          claim, true, "FailedBinding",
          fmt::format("volume \"{}\" already bound to a different claim.", api::name(*volume)));
    }
    if (const auto why = mismatch(*volume, *claim)) {
      return tell(
          claim, true, "VolumeMismatch",
          fmt::format("Cannot bind to requested volume \"{}\": {}", api::name(*volume), *why));
    }
    bind(claim, volume, {});
  }

  void find_volume(const Object& claim) {
    const std::string_view class_name = api::storage_class(*claim);
    const Object chosen = world_.storage_class(class_name);
    const std::string_view node = api::annotation(*claim, api::kSelectedNode);
    const bool waits = chosen != nullptr && api::waits_for_consumer(*chosen) && node.empty();
    if (const Object volume = best_volume(world_, *claim, waits, world_.node(node), taken_)) {
      return bind(claim, volume, {});
    }
    if (waits) return tell_waiting(claim);
    if (const Object fallback = default_class_for(*claim)) {
      plan_.batches.push_back(
          {.writes = {
               patch(claim_resource(), *claim,
                     json::object{
                         {"spec", {{"storageClassName", json::string(api::name(*fallback))}}}})}});
      return;
    }
    if (class_name.empty()) {
      return tell(claim, false, "FailedBinding",
                  "no persistent volumes available for this claim and no storage class is set");
    }
    if (chosen == nullptr) {
      return tell(claim, true, "ProvisioningFailed",
                  fmt::format("storageclass.storage.k8s.io \"{}\" not found", class_name));
    }
    const std::string_view provisioner = json::get_string(*chosen, {"provisioner"});
    if (provisioner == api::kLocalProvisioner) return provision(claim, *chosen, node);
    if (provisioner == "kubernetes.io/no-provisioner") {
      return tell(claim, false, "FailedBinding", "no persistent volumes available for this claim");
    }
    tell(claim, false, "ExternalProvisioning",
         fmt::format("Waiting for a volume to be created either by the external provisioner '{}' "
                     "or manually by the system administrator. If volume creation is delayed, "
                     "please verify that the provisioner is running and correctly registered.",
                     provisioner));
  }

  // A claim that chose no class gets the default one, also where that was made after it. "" is a
  // choice. The newest wins, as on the server.
  Object default_class_for(const json::value& claim) const {
    const json::value* given = json::find(claim, {"spec", "storageClassName"});
    if ((given != nullptr && !given->is_null()) || !api::storage_class(claim).empty())
      return nullptr;
    Object best;
    for (const auto& [name, candidate] : world_.classes) {
      if (api::annotation(*candidate, kDefaultClass) != "true") continue;
      if (best == nullptr || api::created_at(*candidate) > api::created_at(*best)) best = candidate;
    }
    return best;
  }

  void tell_waiting(const Object& claim) {
    std::vector<std::string_view> pods;
    const auto users =
        world_.users.find({std::string(api::ns(*claim)), std::string(api::name(*claim))});
    if (users != world_.users.end()) {
      for (const auto& [name, pod] : users->second) {
        if (json::get_string(*pod, {"spec", "nodeName"}).empty()) pods.push_back(name.second);
      }
    }
    if (pods.empty()) {
      return tell(claim, false, "WaitForFirstConsumer",
                  "waiting for first consumer to be created before binding");
    }
    tell(claim, false, "WaitForPodScheduled",
         fmt::format("waiting for {} {} to be scheduled", pods.size() > 1 ? "pods" : "pod",
                     fmt::join(pods, ",")));
  }

  void provision(const Object& claim, const json::value& chosen, std::string_view node) {
    const auto refuse = [&](std::string_view why) {
      tell(claim, true, "ProvisioningFailed",
           fmt::format("failed to provision volume with StorageClass \"{}\": {}", api::name(chosen),
                       why));
    };
    if (const auto why = api::cannot_provision(*claim); !why.empty()) return refuse(why);
    const json::value volume = new_volume(*claim, chosen, node);
    // As the server has it when it was made, so that the rest of the binding follows at once.
    client::Write create{
        .verb = client::Verb::kCreate, .resource = volume_resource(), .body = volume};
    bind(claim, std::make_shared<const json::value>(volume), create);
  }

  json::value new_volume(const json::value& claim, const json::value& chosen,
                         std::string_view node) const {
    const std::string name = fmt::format("pvc-{}", api::uid(claim));
    json::object spec{
        {"capacity", {{"storage", json::string(requested(claim).text())}}},
        {"accessModes", json::get_array(claim, {"spec", "accessModes"})},
        {"persistentVolumeReclaimPolicy",
         json::string(json::get_string(chosen, {"reclaimPolicy"}, "Delete"))},
        {"storageClassName", json::string(api::name(chosen))},
        {"volumeMode", "Filesystem"},
        {"hostPath",
         {{"path", json::string(options_.folder + "/" + name)}, {"type", "DirectoryOrCreate"}}},
        {"claimRef", claim_reference(claim)}};
    if (!node.empty()) {
      // The node's own word where there is one: its label need not be its name.
      const Object known = world_.node(node);
      const std::string_view host =
          known == nullptr ? node : api::label(*known, "kubernetes.io/hostname");
      json::object requirement{{"key", "kubernetes.io/hostname"},
                               {"operator", "In"},
                               {"values", json::array{json::string(host)}}};
      json::object term{{"matchExpressions", json::array{std::move(requirement)}}};
      if (!host.empty()) {
        spec["nodeAffinity"] =
            json::object{{"required", {{"nodeSelectorTerms", json::array{std::move(term)}}}}};
      }
    }
    return json::object{
        {"apiVersion", "v1"},
        {"kind", "PersistentVolume"},
        {"metadata",
         {{"name", name},
          {"annotations", {{api::kProvisionedBy, json::string(api::kLocalProvisioner)}}},
          {"finalizers", json::array{json::string("kubernetes.io/pv-protection"),
                                     json::string(api::kFolderFinalizer)}}}},
        {"spec", std::move(spec)}};
  }

  // Whatever is still missing for both sides to say that they belong together, as one transaction.
  void bind(const Object& claim, const Object& volume, std::optional<client::Write> create) {
    taken_.emplace(api::name(*volume));
    control::Batch batch;
    if (create) {
      batch.writes.push_back(std::move(*create));
      batch.notes.push_back({claim,
                             {false, "ProvisioningSucceeded",
                              fmt::format("Successfully provisioned volume {} using {}",
                                          api::name(*volume), api::kLocalProvisioner)}});
    } else if (json::get_string(*volume, {"spec", "claimRef", "uid"}) != api::uid(*claim)) {
      const bool reserved = json::find(*volume, {"spec", "claimRef"}) != nullptr;
      json::object body{{"spec", {{"claimRef", claim_reference(*claim)}}}};
      if (!reserved) {
        body["metadata"] = json::object{{"annotations", {{kBoundByController, "yes"}}}};
      }
      batch.writes.push_back(patch(volume_resource(), *volume, std::move(body)));
    }
    if (json::get_string(*volume, {"status", "phase"}) != "Bound") {
      batch.writes.push_back(
          patch_status(volume_resource(), *volume, json::object{{"phase", "Bound"}}));
    }
    bind_claim(*claim, *volume, batch);
    if (!batch.writes.empty()) plan_.batches.push_back(std::move(batch));
  }

  static void bind_claim(const json::value& claim, const json::value& volume,
                         control::Batch& batch) {
    const std::string_view name = json::get_string(claim, {"spec", "volumeName"});
    json::object body;
    json::object annotations;
    if (name.empty()) {
      body["spec"] = json::object{{"volumeName", json::string(api::name(volume))}};
      annotations[kBoundByController] = "yes";
    }
    if (api::annotation(claim, api::kBindCompleted).empty()) {
      annotations[api::kBindCompleted] = "yes";
    }
    if (!annotations.empty()) {
      body["metadata"] = json::object{{"annotations", std::move(annotations)}};
    }
    if (!body.empty()) batch.writes.push_back(patch(claim_resource(), claim, std::move(body)));
    json::object status{{"phase", "Bound"},
                        {"accessModes", json::get_array(volume, {"spec", "accessModes"})},
                        {"capacity", json::get_object(volume, {"spec", "capacity"})}};
    for (const auto& [key, value] : status) {
      const json::value* now =
          json::find(claim, {"status", std::string_view(key.data(), key.size())});
      if (now != nullptr && *now == value) continue;
      batch.writes.push_back(patch_status(claim_resource(), claim, std::move(status)));
      break;
    }
  }

  const World& world_;
  const StorageOptions& options_;
  control::GlobalPlan& plan_;
  std::set<std::string, std::less<>> taken_ = {};  // by claims planned before
};

}  // namespace

void plan_claims(const World& world, const StorageOptions& options, control::GlobalPlan& plan) {
  Claims(world, options, plan).run();
}

void plan_ephemeral_claims(const World& world, control::GlobalPlan& plan) {
  for (const auto& [name, pod] : world.pods) {
    const std::string_view phase = json::get_string(*pod, {"status", "phase"});
    if (api::deleting(*pod) || phase == "Succeeded" || phase == "Failed") continue;
    for (const api::ClaimUse& use : api::claims_of(*pod)) {
      if (use.claim_template == nullptr || world.claim(name.first, use.claim) != nullptr) continue;
      json::object metadata = json::get_object(*use.claim_template, {"metadata"});
      metadata["name"] = use.claim;
      metadata["ownerReferences"] = json::array{api::owner_reference(*pod)};
      client::Write create{.resource = claim_resource(), .ns = name.first};
      create.body = json::object{{"apiVersion", "v1"},
                                 {"kind", "PersistentVolumeClaim"},
                                 {"metadata", std::move(metadata)},
                                 {"spec", json::get_object(*use.claim_template, {"spec"})}};
      plan.batches.push_back({.writes = {std::move(create)}});
    }
  }
}

}  // namespace skiff::storage
