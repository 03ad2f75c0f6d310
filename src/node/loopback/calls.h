// How calls of programs are led: the kernel stops at bind() and connect() and asks the shim.
#pragma once

#include <functional>

#include "base/fd.h"
#include "base/result.h"
#include "node/loopback/lead.h"

namespace skiff::node {

// From here on this process and all that it starts are asked about, by the descriptor that is the
// answer: it is for the shim, which must answer every call. Rights can no longer be gained (sudo).
// Not valid: the kernel refuses, and nothing is led.
Fd install_filter();
// Whether this machine can do that: tried in a process of its own.
Result<void> can_lead();

// For the shim, when the descriptor is readable. False: nobody is left to ask.
bool answer_call(int descriptor, LedPod pod);

}  // namespace skiff::node
