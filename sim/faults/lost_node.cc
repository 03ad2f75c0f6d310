// A node disappears for a while; what ran on it is dead when it is back.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_lost_node(World& world, Random& random) {
  // A minute or two, or so long that its pods are given up.
  const std::uint64_t most = random.chance(25) ? 900 : 120;
  world.nodes().lose(random, std::chrono::seconds(5 + random.below(most)));
}

}  // namespace

const Fault kLostNode = {.name = "lost-node", .strike = strike_lost_node};

}  // namespace skiff::sim::faults
