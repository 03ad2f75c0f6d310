// The volume claims that a JobSet makes for its pods to share (spec.volumeClaimPolicies).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/checks.h"
#include "api/kind.h"
#include "base/json.h"

namespace skiff::jobsets {

const api::Resource& claim_resource();

// <template>-<jobset>
std::string claim_name(std::string_view claim, std::string_view jobset);
// What a claim's name may end in, so that a set finds those called after it.
std::vector<std::string> endings(std::string_view name);

// Claims that are not there yet. Those that are deleted with the set are its own.
std::vector<json::value> missing_claims(const json::value& jobset,
                                        const std::vector<Object>& there);
// Gives the pod a volume for each claim that one of its containers mounts.
void add_claims(const json::value& jobset, json::object& pod_spec);

void check_claims(const json::value& jobset, api::Causes& out);

}  // namespace skiff::jobsets
