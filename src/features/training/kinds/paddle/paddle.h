// PaddleJob (kubeflow.org/v1): parameter servers (Master) and workers, or workers alone.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& paddle();

}  // namespace skiff::training
