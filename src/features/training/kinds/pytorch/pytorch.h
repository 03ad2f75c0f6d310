// PyTorchJob (kubeflow.org/v1): a master and workers, or workers alone that find each other.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& pytorch();

}  // namespace skiff::training
