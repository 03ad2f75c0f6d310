// The ClusterTrainingRuntimes that every Skiff has from its first start.
#pragma once

#include <vector>

#include "client/client.h"

namespace skiff::trainer {

// torch-distributed, jax-distributed, xgboost-distributed, deepspeed-distributed and
// mlx-distributed, as upstream ships them, and plain. And what upstream's SDK asks for to see that
// somebody runs TrainJobs. To be created where absent: what a user has changed stays as it is.
std::vector<client::Write> builtin_objects();

}  // namespace skiff::trainer
