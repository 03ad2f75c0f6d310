// StatefulSet: pods with names, one after the other, each with its own claims.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

const api::Resource& stateful_set_resource();

control::Plan plan_stateful_set(const control::Observed& observed, Time now);
control::Controller stateful_set_controller();

}  // namespace skiff::workloads
