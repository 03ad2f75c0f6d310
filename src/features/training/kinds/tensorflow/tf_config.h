// TF_CONFIG: how TensorFlow learns who is in the cluster and which member it is.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

// TF_CONFIG of every replica; nothing for a job of one replica, which trains by itself.
Environment tf_environment(const Job& job);

}  // namespace skiff::training
