// Reads a job's spec and fills in what it leaves out.
//
// Defaults live here and not in the stored object: a user who reads the job back sees what was
// written, and a default can change without rewriting what is stored.
#pragma once

#include <string_view>

#include "features/training/engine/job.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

Job read_job(const JobKind& kind, const json::value& root);

// The role that a key of the replica map means, whatever its case; empty where it means none.
std::string_view canonical_role(const JobKind& kind, std::string_view key);

// The container that trains: the one of the kind's name, else the first; null where there is none.
const json::object* training_container(const JobKind& kind, const json::object& pod_template);

}  // namespace skiff::training
