// The JobSet that a TrainJob becomes under its runtime.
#pragma once

#include "base/json.h"

namespace skiff::trainer {

// `trainjob` and `runtime` have been checked against each other. Nodes are numbered from 0, find
// each other by <job>-node-0-<n>.<job>, and are placed as one gang.
json::value jobset_of(const json::value& trainjob, const json::value& runtime);

}  // namespace skiff::trainer
