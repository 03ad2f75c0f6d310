// The machine loses power: what was not synced is gone, and so is every process.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike(World& world, Random& random) {
  (void)random;
  world.restart(true);
}

}  // namespace

const Fault kPowerCut = {.name = "power-cut", .strike = strike};

}  // namespace skiff::sim::faults
