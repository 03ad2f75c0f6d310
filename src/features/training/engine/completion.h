// The end of a job: how it is written down, and what happens after it.
#pragma once

#include <string>

#include "features/training/engine/draft.h"

namespace skiff::training {

// Only the status: pods go with the next plan, which finds the end written down. Were they deleted
// first and the controller died before the status, the job would begin again.
void succeed(Draft& draft);
void fail_job(Draft& draft, std::string message);

// Clean-up and TTL of a job that had ended before this plan.
void after_end(Draft& draft);

}  // namespace skiff::training
