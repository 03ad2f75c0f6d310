// A node disappears for a while; what ran on it is dead when it is back.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_lost_node(World& world, Random& random) {
  world.nodes().lose(random, std::chrono::seconds(5 + random.below(120)));
}

}  // namespace

const Fault kLostNode = {.name = "lost-node", .strike = strike_lost_node};

}  // namespace skiff::sim::faults
