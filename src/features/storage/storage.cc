#include "features/storage/storage.h"

#include "api/meta.h"

namespace skiff::storage {

client::Write patch(const api::Resource& resource, const json::value& object, json::value body) {
  return {.verb = client::Verb::kMergePatch,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .body = std::move(body),
          .uid = std::string(api::uid(object)),
          .resource_version = std::string(api::resource_version(object))};
}

client::Write patch_status(const api::Resource& resource, const json::value& object,
                           json::value status) {
  client::Write write = patch(resource, object, json::object{{"status", std::move(status)}});
  write.subresource = "status";
  write.resource_version.clear();
  return write;
}

void drop_finalizer(const api::Resource& resource, const Object& object, std::string_view finalizer,
                    control::GlobalPlan& plan) {
  json::array kept;
  bool found = false;
  for (const json::value& entry : json::get_array(*object, {"metadata", "finalizers"})) {
    const bool this_one = entry.is_string() && json::view(entry.get_string()) == finalizer;
    found = found || this_one;
    if (!this_one) kept.push_back(entry);
  }
  if (!found) return;
  plan.batches.push_back(
      {.writes = {patch(resource, *object,
                        json::object{{"metadata", {{"finalizers", std::move(kept)}}}})}});
}

control::GlobalPlan plan_storage(const World& world, const StorageOptions& options) {
  control::GlobalPlan plan;
  plan_ephemeral_claims(world, plan);
  plan_claims(world, options, plan);
  plan_volumes(world, plan);
  return plan;
}

}  // namespace skiff::storage
