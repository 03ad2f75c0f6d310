// JAXJob (kubeflow.org/v1): equal workers, the first of which coordinates.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

const JobKind& jax();

}  // namespace skiff::training
