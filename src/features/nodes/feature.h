// The controller of nodes, for the embedded server.
#pragma once

#include "control/controller.h"

namespace skiff::nodes {

control::GlobalController make();

}  // namespace skiff::nodes
