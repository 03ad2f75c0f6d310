#include "features/storage/world.h"

#include "api/core/claims.h"
#include "api/meta.h"

namespace skiff::storage {
namespace {

Name name_of(const json::value& object) {
  return {std::string(api::ns(object)), std::string(api::name(object))};
}

Object at(const Objects& objects, std::string_view ns, std::string_view name) {
  const auto found = objects.find({std::string(ns), std::string(name)});
  return found == objects.end() ? nullptr : found->second;
}

}  // namespace

const api::Resource& claim_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "persistentvolumeclaims", .kind = "PersistentVolumeClaim"};
  return kResource;
}
const api::Resource& volume_resource() {
  static const api::Resource kResource{.version = "v1",
                                       .plural = "persistentvolumes",
                                       .kind = "PersistentVolume",
                                       .namespaced = false};
  return kResource;
}
const api::Resource& class_resource() {
  static const api::Resource kResource{.group = "storage.k8s.io",
                                       .version = "v1",
                                       .plural = "storageclasses",
                                       .kind = "StorageClass",
                                       .namespaced = false};
  return kResource;
}
const api::Resource& node_resource() {
  static const api::Resource kResource{
      .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  return kResource;
}
const api::Resource& pod_resource() {
  static const api::Resource kResource{.version = "v1", .plural = "pods", .kind = "Pod"};
  return kResource;
}

Object World::claim(std::string_view ns, std::string_view name) const {
  return at(claims, ns, name);
}
Object World::volume(std::string_view name) const { return at(volumes, "", name); }
Object World::storage_class(std::string_view name) const { return at(classes, "", name); }
Object World::node(std::string_view name) const { return at(nodes, "", name); }

std::vector<api::Resource> Books::watched() {
  return {claim_resource(), volume_resource(), class_resource(), node_resource(), pod_resource()};
}

void Books::changed(std::size_t which, const Object& before, const Object& after) {
  Objects* const tables[] = {&world_.claims, &world_.volumes, &world_.classes, &world_.nodes};
  if (which >= std::size(tables)) return pod_changed(before, after);
  if (tables[which] == &world_.volumes) volume_changed(before, after);
  if (after != nullptr) {
    (*tables[which])[name_of(*after)] = after;
  } else {
    tables[which]->erase(name_of(*before));
  }
}

void Books::volume_changed(const Object& before, const Object& after) {
  const auto list_of = [&](const json::value& volume) -> Objects& {
    if (json::find(volume, {"spec", "claimRef"}) == nullptr) {
      return world_.free[std::string(api::storage_class(volume))];
    }
    return world_
        .reserved[{std::string(json::get_string(volume, {"spec", "claimRef", "namespace"})),
                   std::string(json::get_string(volume, {"spec", "claimRef", "name"}))}];
  };
  if (before != nullptr) {
    list_of(*before).erase(name_of(*before));
    std::erase_if(world_.free, [](const auto& entry) { return entry.second.empty(); });
    const Name claim{std::string(json::get_string(*before, {"spec", "claimRef", "namespace"})),
                     std::string(json::get_string(*before, {"spec", "claimRef", "name"}))};
    const auto there = world_.reserved.find(claim);
    if (there != world_.reserved.end() && there->second.empty()) world_.reserved.erase(there);
  }
  if (after != nullptr) list_of(*after)[name_of(*after)] = after;
}

void Books::pod_changed(const Object& before, const Object& after) {
  if (before != nullptr) {
    const Name pod = name_of(*before);
    world_.pods.erase(pod);
    for (const api::ClaimUse& use : api::claims_of(*before)) {
      const Name claim{pod.first, use.claim};
      auto& users = world_.users[claim];
      users.erase(pod);
      if (users.empty()) world_.users.erase(claim);
    }
  }
  if (after == nullptr) return;
  const Name pod = name_of(*after);
  for (const api::ClaimUse& use : api::claims_of(*after)) {
    world_.users[{pod.first, use.claim}][pod] = after;
    world_.pods[pod] = after;
  }
}

}  // namespace skiff::storage
