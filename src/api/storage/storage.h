// The kinds StorageClass, CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment. They are
// kept, not acted on.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> storage_kinds();

}  // namespace skiff::api
