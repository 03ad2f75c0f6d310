// torchtune: a TrainJob whose command is `tune run` gets the recipe and the configuration that fit
// its model, nodes and devices.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "features/trainer/policies.h"

namespace skiff::trainer {

// Whether the job leaves it to the runtime what torchtune runs.
bool runs_torchtune(const json::value& trainjob, const json::value& runtime);

// The whole command; the arguments of the job come after it. `resources` are those that the
// container `node` will have.
json::array torchtune_command(const json::value& runtime, const json::value& trainjob,
                              const Placement& placement, const json::value& resources);

void check_torchtune(const json::value& trainjob, const json::value& runtime,
                     std::vector<Cause>& out);

}  // namespace skiff::trainer
