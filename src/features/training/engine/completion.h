// The end of a job: how it is written down, and what happens after it.
#pragma once

#include <string>
#include <string_view>

#include "features/training/engine/draft.h"

namespace skiff::training {

// Only the status: pods go with the next plan, which finds the end written down. Were they deleted
// first and the controller died before the status, the job would begin again.
void succeed(Draft& draft);

// Why a job has failed; it has not where there is nothing to say.
struct JobFailure {
  std::string message = {};
  std::string_view word = "Failed";  // of the condition's reason: TFJobFailed
  bool warning = false;              // whether the event is one
};
void fail_job(Draft& draft, JobFailure why);

// Clean-up and TTL of a job that had ended before this plan.
void after_end(Draft& draft);

}  // namespace skiff::training
