// What the storage controller does next, decided purely from what it sees.
#pragma once

#include <string>

#include "control/controller.h"
#include "features/storage/world.h"

namespace skiff::storage {

struct StorageOptions {
  std::string folder = {};  // where provisioned volumes live, on the node
};

// Every batch concerns one claim or one volume. Batches without writes only tell something, and
// tell it as long as it is so.
control::GlobalPlan plan_storage(const World& world, const StorageOptions& options);

// The parts, in the order in which the plan lists them.
void plan_ephemeral_claims(const World& world, control::GlobalPlan& plan);
void plan_claims(const World& world, const StorageOptions& options, control::GlobalPlan& plan);
void plan_volumes(const World& world, control::GlobalPlan& plan);

// Changes the object only if it is as it was observed.
client::Write patch(const api::Resource& resource, const json::value& object, json::value body);
// After `patch` in the same batch: the same object, and no other of its name.
client::Write patch_status(const api::Resource& resource, const json::value& object,
                           json::value status);
// The patch that takes the finalizer off, or none where it has none.
void drop_finalizer(const api::Resource& resource, const Object& object, std::string_view finalizer,
                    control::GlobalPlan& plan);

}  // namespace skiff::storage
