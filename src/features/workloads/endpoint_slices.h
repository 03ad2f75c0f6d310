// The EndpointSlices of one Service: what stays where it is, what changes, what comes and goes.
#pragma once

#include "control/controller.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {

// The slices that are `observed` brought in line with the pods. An endpoint stays in its slice; new
// ones fill slices that change anyway, then any with room, then new ones. A service without any
// endpoint has one empty slice of each family, so that readers can tell it from one that nobody has
// looked at.
void plan_slices(const json::value& service, const std::vector<Object>& pods,
                 const std::vector<Object>& observed, NewNames names, control::Plan& plan);

}  // namespace skiff::workloads
