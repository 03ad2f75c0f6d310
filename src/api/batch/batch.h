// The kinds of group batch: Job and CronJob.
#pragma once

#include <vector>

#include "api/checks.h"
#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> batch_kinds();

Kind job_kind();
Kind cron_job_kind();

// Fills in what the pod template and the failure policy of a JobSpec leave out.
void default_job_spec(json::object& spec);
// A JobSpec at `path` besides its selector, which a Job has and a CronJob's template has not.
void check_job_spec(const json::value& spec, std::string_view path, Causes& out);
// podFailurePolicy and successPolicy.
void check_job_policies(const json::value& spec, std::string_view path, Causes& out);
// An update of the sub-resource status: what has ended stays ended, and counts fit together.
void check_job_status(const json::value& job, const json::value& old, Causes& out);

// "1,3-5" with every index below `completions`, growing; the number of indexes, or what is wrong.
Result<std::int64_t> count_indexes(std::string_view text, std::int64_t completions);

}  // namespace skiff::api
