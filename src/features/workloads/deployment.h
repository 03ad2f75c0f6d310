// Deployments: one ReplicaSet for each revision of the template, and the way from one to the next.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

control::Plan plan_deployment(const control::Observed& observed, Time now);
control::Controller deployment_controller();

}  // namespace skiff::workloads
