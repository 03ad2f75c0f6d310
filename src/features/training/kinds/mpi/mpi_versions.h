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

std::vector<OldVersion> old_mpijob_versions();

}  // namespace skiff::training
