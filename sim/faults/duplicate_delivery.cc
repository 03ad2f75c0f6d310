// Watches repeat events.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_duplicate_delivery(World& world, Random& random) {
  world.gate().duplicate_percent = static_cast<unsigned>(random.below(50));
}

}  // namespace

const Fault kDuplicateDelivery = {.name = "duplicate-delivery",
                                  .strike = strike_duplicate_delivery};

}  // namespace skiff::sim::faults
