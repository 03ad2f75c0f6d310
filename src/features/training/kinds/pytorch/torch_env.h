// The variables from which torchrun and torch.distributed learn their place in the job.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

Environment torch_environment(const Job& job);

}  // namespace skiff::training
