// Rules of the overrides that TrainJobs had before runtimePatches: podSpecOverrides of 2.0 and
// podTemplateOverrides of 2.1.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::trainer {

// Fields that an override may not set, by themselves. `old`, where the job is changed and not new,
// may be older than these rules: what is as it was is not judged.
void check_overrides(const json::value& trainjob, const json::value* old, std::vector<Cause>& out);
// Parts and containers that the runtime does not have.
void check_override_targets(const json::value& trainjob, const json::value& runtime,
                            std::vector<Cause>& out);

}  // namespace skiff::trainer
