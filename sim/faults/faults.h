// The faults there are; sim/faults.cc lists them.
#pragma once

#include "sim/fault.h"

namespace skiff::sim::faults {

extern const Fault kCrash;
extern const Fault kPowerCut;
extern const Fault kStaleCache;
extern const Fault kLostWatch;
extern const Fault kConflict;
extern const Fault kLostAnswer;
extern const Fault kDuplicateDelivery;
extern const Fault kSlowNode;
extern const Fault kLostNode;

}  // namespace skiff::sim::faults
