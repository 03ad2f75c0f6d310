// The smallest workload: an Echo keeps N pods running until all have succeeded. It proves the
// simulator itself, and shows what a feature has to supply.
#pragma once

#include <memory>

#include "sim/workload.h"

namespace skiff::sim {

std::unique_ptr<Workload> make_echo();

// For tests of the simulator: an Echo with a known mistake.
enum class Mistake {
  kNone,
  kStopsAfterCrash,  // makes no pod once there is one
  kTwoInOnePlace,    // makes two pods for each index
  kReopens,          // takes back that it is done
  kNeverContent,     // changes its status at every look
};
std::unique_ptr<Workload> make_echo(Mistake mistake);

}  // namespace skiff::sim
