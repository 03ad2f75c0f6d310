// What a training job must satisfy to be stored, beyond its schema.
//
// Sentences carry the path of the field they are about, in the form kubectl shows them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/result.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

// The shared rules, then the kind's own. Writes to status are not judged: they are the engine's.
// Those by the scale endpoint are, like any other.
std::vector<Cause> validate_job(const JobKind& kind, const json::value& object,
                                const api::Admission& context);

// For kinds with one master: where the role is there, it must say that it has one replica.
void check_single_master(const JobKind& kind, const json::value& object,
                         std::vector<Cause>& causes);

// For kinds with an elasticPolicy: it needs workers, and its bounds fit each other.
void check_elastic(const JobKind& kind, const json::value& object, std::vector<Cause>& causes);

// The path of a role in the spec: spec.tfReplicaSpecs[Worker].
std::string role_path(const JobKind& kind, std::string_view key);

}  // namespace skiff::training
