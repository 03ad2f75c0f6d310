// PodDisruptionBudget: how many of its pods may be evicted now, for whoever evicts them.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

const api::Resource& budget_resource();

control::Plan plan_budget(const control::Observed& observed, Time now);
control::Controller budget_controller();

}  // namespace skiff::workloads
