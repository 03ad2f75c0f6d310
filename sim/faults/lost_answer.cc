// Writes take effect, but the answer never comes.
#include "sim/faults/faults.h"
#include "sim/world.h"

namespace skiff::sim::faults {
namespace {

void strike_lost_answer(World& world, Random& random) {
  world.gate().lost_answer_percent = static_cast<unsigned>(random.below(30));
}

}  // namespace

const Fault kLostAnswer = {.name = "lost-answer", .strike = strike_lost_answer};

}  // namespace skiff::sim::faults
