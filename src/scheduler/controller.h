// The scheduler as a controller: binds what schedule() places and says why the rest waits.
#pragma once

#include <cstddef>

#include "control/controller.h"

namespace skiff::scheduler {

// From so many pods on that wait, to write up their bindings takes longer than to copy the books:
// the plan is then made apart.
inline constexpr std::size_t kMany = 200;

control::GlobalController make_scheduler(std::size_t many = kMany);

}  // namespace skiff::scheduler
