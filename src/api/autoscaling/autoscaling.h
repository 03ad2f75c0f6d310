// The kind HorizontalPodAutoscaler: kept as autoscaling/v2, and seen as v1 too.
#pragma once

#include <vector>

#include "api/checks.h"
#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> autoscaling_kinds();

// Between autoscaling/v1 and v2. What v1 has no field for travels in annotations.
void autoscaler_to_v2(json::value& object);
void autoscaler_to_v1(json::value& object);

// As v2 has it.
void check_autoscaler(const json::value& object, const Admission& context, Causes& out);
// kubectl's TARGETS: cpu: 40%/80%, or <unknown> for what nobody has measured.
std::string targets_cell(const json::value& object);

}  // namespace skiff::api
