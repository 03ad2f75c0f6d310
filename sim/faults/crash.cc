// The process is killed at one of its next writes, before or after it takes effect.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_crash(World& world, Random& random) {
  world.gate().die_at = random.below(6);
  world.gate().die_after_effect = random.chance(50);
  world.gate().die_by_power_cut = false;
}

}  // namespace

const Fault kCrash = {.name = "crash", .strike = strike_crash};

}  // namespace skiff::sim::faults
