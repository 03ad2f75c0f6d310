// TFJob before v1: v1alpha1, v1alpha2, v1beta1, v1beta2.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

std::vector<OldVersion> old_tfjob_versions();

}  // namespace skiff::training
