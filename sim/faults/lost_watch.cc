// Watches break, or are so old that their history is gone.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_lost_watch(World& world, Random& random) {
  random.chance(50) ? world.gate().break_watches() : world.gate().expire_watches();
}

}  // namespace

const Fault kLostWatch = {.name = "lost-watch", .strike = strike_lost_watch};

}  // namespace skiff::sim::faults
