// The machine loses power: what was not synced is gone, and so is every process. At rest, or in the
// middle of the controllers' work.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_power_cut(World& world, Random& random) {
  if (random.chance(50)) return world.restart(true);
  world.gate().die_at = random.below(6);
  world.gate().die_after_effect = random.chance(50);
  world.gate().die_by_power_cut = true;
}

}  // namespace

const Fault kPowerCut = {.name = "power-cut", .strike = strike_power_cut};

}  // namespace skiff::sim::faults
