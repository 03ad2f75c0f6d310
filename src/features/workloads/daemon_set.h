// DaemonSets: one pod on every node that admits it, renewed node by node.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

const api::Resource& daemon_set_resource();
control::Plan plan_daemon_set(const control::Observed& observed, Time now);
control::Controller daemon_set_controller();

}  // namespace skiff::workloads
