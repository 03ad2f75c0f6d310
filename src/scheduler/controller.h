// The scheduler as a controller: binds what schedule() places and says why the rest waits.
#pragma once

#include "control/controller.h"

namespace skiff::scheduler {

control::GlobalController make_scheduler();

}  // namespace skiff::scheduler
