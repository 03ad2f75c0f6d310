// A node takes many times longer for everything.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_slow_node(World& world, Random& random) {
  world.nodes().slow(random, 1 + static_cast<unsigned>(random.below(20)));
}

}  // namespace

const Fault kSlowNode = {.name = "slow-node", .strike = strike_slow_node};

}  // namespace skiff::sim::faults
