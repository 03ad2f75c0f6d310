// MPIJob in its first version, v1alpha1: one template for all pods, and a number of processing
// units (or of replicas) from which the workers follow.
//
// Such a job is kept as the launcher and the workers that it means. The annotation older-fields
// holds its own words, so that it reads as it was written for as long as they still say what the
// kept job says. A job that another version wrote, or changed in a way that the words cannot say,
// reads as a number of replicas, and the annotation newer-fields brings all of it back.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::training {

inline constexpr std::string_view kUnitsVersion = "v1alpha1";

void from_units(json::value& object);
void to_units(json::value& object);
// Of a kept job: what is wrong with the words of v1alpha1 in which it was written.
void validate_units(const json::value& object, std::vector<Cause>& causes);

}  // namespace skiff::training
