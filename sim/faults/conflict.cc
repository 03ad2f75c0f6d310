// Writes are refused as conflicting although nothing changed.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_conflict(World& world, Random& random) {
  world.gate().conflict_percent = static_cast<unsigned>(random.below(40));
}

}  // namespace

const Fault kConflict = {.name = "conflict", .strike = strike_conflict};

}  // namespace skiff::sim::faults
