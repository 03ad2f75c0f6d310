// ImageMapping: which of this machine's files stand for a container image.
#pragma once

#include "api/kind.h"

namespace skiff::api {

// skiff.dev/v1, cluster-scoped, `kubectl get im`.
Kind image_mapping_kind();

}  // namespace skiff::api
