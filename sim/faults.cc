#include "sim/faults/faults.h"

#include <array>

namespace skiff::sim {

std::span<const Fault* const> all_faults() {
  static constexpr std::array kFaults = {
      &faults::kCrash,    &faults::kPowerCut,   &faults::kStaleCache,        &faults::kLostWatch,
      &faults::kConflict, &faults::kLostAnswer, &faults::kDuplicateDelivery, &faults::kSlowNode,
      &faults::kLostNode,
  };
  return kFaults;
}

}  // namespace skiff::sim
