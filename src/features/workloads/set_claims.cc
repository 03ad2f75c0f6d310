#include "features/workloads/set_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

// Of that kind and name, whichever life of it is meant.
bool refers_to(const json::value& owner, std::string_view kind, std::string_view name) {
  return json::get_string(owner, {"kind"}) == kind && json::get_string(owner, {"name"}) == name;
}

// data-my-web-3: whatever stands before it, the set may be my-web or web.
std::vector<std::string> sets_named_by(std::string_view claim) {
  std::vector<std::string> out;
  const std::size_t dash = claim.rfind('-');
  if (dash == std::string_view::npos) return out;
  const std::string_view stem = claim.substr(0, dash);
  for (std::size_t at = stem.find('-'); at != std::string_view::npos; at = stem.find('-', at + 1)) {
    out.emplace_back(stem.substr(at + 1));
  }
  return out;
}

}  // namespace

const api::Resource& claim_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
  return kResource;
}

control::Related claims_of_sets() {
  return {.resource = claim_resource(),
          .wants =
              [](const json::value& set) {
                std::vector<std::string> out;
                if (!json::get_array(set, {"spec", "volumeClaimTemplates"}).empty()) {
                  out.emplace_back(api::name(set));
                }
                return out;
              },
          .has = [](const json::value& claim) { return sets_named_by(api::name(claim)); },
          .writes = true};
}

SetClaims::SetClaims(const json::value& set, const std::vector<Object>& seen)
    : set_(set), templates_(json::get_array(set, {"spec", "volumeClaimTemplates"})) {
  for (const Object& claim : seen) seen_.emplace(api::name(*claim), claim);
}

std::string SetClaims::name_of(const json::value& claim_template, std::int64_t ordinal) const {
  return fmt::format("{}-{}-{}", api::name(claim_template), api::name(set_), ordinal);
}

bool SetClaims::deletes(std::string_view when) const {
  return json::get_string(set_, {"spec", "persistentVolumeClaimRetentionPolicy", when}) == "Delete";
}

std::optional<std::string> SetClaims::unusable(const json::value& claim,
                                               std::string_view pod) const {
  if (api::deleting(claim)) return fmt::format("pvc {} is being deleted", api::name(claim));
  const auto of_pod = [&](const json::value& owner) { return refers_to(owner, "Pod", pod); };
  if (deletes("whenScaled") &&
      std::ranges::any_of(json::get_array(claim, {"metadata", "ownerReferences"}), of_pod)) {
    return fmt::format("pvc {} is about to go with an earlier pod", api::name(claim));
  }
  return std::nullopt;
}

json::value SetClaims::make(const json::value& claim_template, const std::string& name) const {
  json::value claim = claim_template;
  json::object& meta = json::make_object(claim, {"metadata"});
  meta["name"] = name;
  if (deletes("whenDeleted")) meta["ownerReferences"] = json::array{api::owner_reference(set_)};
  json::object& labels = json::make_object(claim, {"metadata", "labels"});
  for (const auto& [key, value] : json::get_object(set_, {"spec", "selector", "matchLabels"})) {
    labels[key] = value;
  }
  json::object& root = claim.as_object();
  root.erase("status");
  root["apiVersion"] = "v1";
  root["kind"] = "PersistentVolumeClaim";
  return claim;
}

std::optional<std::string> SetClaims::provide(std::int64_t ordinal, control::Plan& plan) const {
  const std::string pod = fmt::format("{}-{}", api::name(set_), ordinal);
  std::optional<std::string> why;
  for (const json::value& claim_template : templates_) {
    const std::string name = name_of(claim_template, ordinal);
    if (const auto there = seen_.find(name); there != seen_.end()) {
      if (!why) why = unusable(*there->second, pod);
      continue;
    }
    plan.writes.push_back(creation(claim_resource(), set_, make(claim_template, name)));
    plan.notes.push_back({.reason = "SuccessfulCreate",
                          .message = fmt::format("create Claim {} Pod {} in StatefulSet {} success",
                                                 name, pod, api::name(set_))});
  }
  return why;
}

std::optional<json::array> SetClaims::new_owners(const json::value& claim, const json::value& pod,
                                                 bool scaled_down, control::Plan& plan) const {
  json::array owners;
  bool foreign = false;
  for (const json::value& owner : json::get_array(claim, {"metadata", "ownerReferences"})) {
    const bool of_set = refers_to(owner, "StatefulSet", api::name(set_));
    const bool of_pod = refers_to(owner, "Pod", api::name(pod));
    if (of_set || of_pod) {
      // Of an earlier life: the collector of garbage knows better.
      if (json::get_string(owner, {"uid"}) != api::uid(of_set ? set_ : pod)) return std::nullopt;
      continue;
    }
    foreign = foreign || json::get_bool(owner, {"controller"}).value_or(false);
    owners.push_back(owner);
  }
  const bool to_pod = scaled_down && deletes("whenScaled");
  const bool to_set = !to_pod && deletes("whenDeleted");
  if (foreign && (deletes("whenScaled") || deletes("whenDeleted"))) {
    plan.notes.push_back(
        {.warning = true,
         .reason = "ConflictingController",
         .message = fmt::format("PersistentVolumeClaim {} has a conflicting OwnerReference that "
                                "acts as a manging controller, the retention policy is ignored for "
                                "this claim",
                                api::name(claim))});
  } else if (to_pod || to_set) {
    owners.push_back(api::owner_reference(to_pod ? pod : set_));
  }
  return owners;
}

bool SetClaims::retain(const json::value& pod, std::int64_t ordinal, bool scaled_down,
                       control::Plan& plan) const {
  bool written = false;
  for (const json::value& claim_template : templates_) {
    const auto there = seen_.find(name_of(claim_template, ordinal));
    if (there == seen_.end() || api::deleting(*there->second)) continue;
    auto owners = new_owners(*there->second, pod, scaled_down, plan);
    if (!owners || *owners == json::get_array(*there->second, {"metadata", "ownerReferences"})) {
      continue;
    }
    json::value list = owners->empty() ? json::value(nullptr) : json::value(*std::move(owners));
    plan.writes.push_back(
        patch(claim_resource(), *there->second,
              {{"metadata", json::object{{"ownerReferences", std::move(list)}}}}));
    written = true;
  }
  return written;
}

void SetClaims::mount(json::value& pod, std::int64_t ordinal) const {
  if (templates_.empty()) return;
  json::array volumes;
  for (const json::value& claim_template : templates_) {
    volumes.push_back(
        {{"name", json::string(api::name(claim_template))},
         {"persistentVolumeClaim", {{"claimName", name_of(claim_template, ordinal)}}}});
  }
  for (const json::value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const auto same = [&](const json::value& claim_template) {
      return api::name(claim_template) == json::get_string(volume, {"name"});
    };
    if (std::ranges::none_of(templates_, same)) volumes.push_back(volume);
  }
  json::set(pod, {"spec", "volumes"}, std::move(volumes));
}

}  // namespace skiff::workloads
