// PyTorchJob before v1: v1alpha1.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

std::vector<OldVersion> old_pytorchjob_versions();

}  // namespace skiff::training
