// JobSet (jobset.x-k8s.io/v1alpha2): what it is called, what it may say, what it means by silence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::jobsets {

inline constexpr std::string_view kOwnManager = "jobset.sigs.k8s.io/jobset-controller";

const api::Resource& jobset_resource();
const api::Resource& job_resource();
const api::Resource& service_resource();

// What upstream's webhook fills in. Done again by the plan: a cluster that is not ours does not.
void set_defaults(json::value& jobset);
// Rules beyond the schema, with upstream's sentences. Writes to status are not judged.
std::vector<Cause> validate(const json::value& jobset, const api::Admission& context);

// One entry of spec.replicatedJobs.
std::string_view part_name(const json::value& part);
std::int64_t replicas(const json::value& part);
const json::array& parts(const json::value& jobset);
bool suspended(const json::value& jobset_or_job);
// The name of the headless service.
std::string_view subdomain(const json::value& jobset);
bool has_hostnames(const json::value& jobset);
// <jobset>-<part>-<index>
std::string job_name(std::string_view jobset, std::string_view part, std::int64_t index);
// <jobset>-<part>-<job>-<pod>.<subdomain> of the coordinator; empty where there is none.
std::string coordinator(const json::value& jobset);

}  // namespace skiff::jobsets
