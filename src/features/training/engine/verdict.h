// How most kinds judge a job: one role decides for all.
#pragma once

#include "features/training/engine/job_kind.h"

namespace skiff::training {

// The job runs when a replica of this role does, and has succeeded when all of them have. A job
// without the role (null) does neither.
Verdict judge_by(const Role* decisive, std::span<const RoleState> roles);

// The master where there is one, else the workers; null where there are neither.
const Role* master_or_workers(const Job& job);

}  // namespace skiff::training
