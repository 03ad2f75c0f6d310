// MPIJob in its versions before v2beta1: v1, which the training operator has, v1alpha2, and
// v1alpha1 (mpi_units.h).
#pragma once

#include <string_view>
#include <vector>

#include "features/training/engine/job_kind.h"

namespace skiff::training {

// Among the fields that an object keeps of an older version: which one it was written in. A job
// keeps the defaults of that version.
inline constexpr std::string_view kWrittenAs = "writtenAs";
inline constexpr std::string_view kMainContainer = "mainContainer";
// What another old version keeps, and the spec as it was written.
inline constexpr std::string_view kOlder = "older";
inline constexpr std::string_view kSpec = "spec";

// Members of what is kept; empty where absent or of another type.
std::string_view text_at(const json::object& object, std::string_view key);
json::object object_at(const json::object& object, std::string_view key);
// Whether this is a spec of v2beta1.
bool fits_mpi(const json::object& spec);

std::vector<OldVersion> old_mpijob_versions();

}  // namespace skiff::training
