// Controllers see the world late.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_stale_cache(World& world, Random& random) {
  world.gate().watch_delay = std::chrono::milliseconds(random.below(20'000));
}

}  // namespace

const Fault kStaleCache = {.name = "stale-cache", .strike = strike_stale_cache};

}  // namespace skiff::sim::faults
