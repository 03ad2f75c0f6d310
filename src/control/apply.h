// Turns a Plan into the writes of one submit: ordered, with preconditions filled in.
#pragma once

#include <vector>

#include "client/client.h"
#include "control/controller.h"

namespace skiff::control {

// Deletes, creates, patches and updates, then the root's status, then the root's own deletion. The
// order is what makes a cut after any write harmless: the status never claims what is not done, and
// the root outlives what it has to clean up. A write on an observed object that names no uid gets
// it; a whole update also gets the resourceVersion it was planned from. Children are made only for
// a root that is as it was observed: the status carries that condition, and where there is none, an
// empty patch of the root that comes first, as it does where the plan asks for it.
std::vector<client::Write> arrange(const Controller& controller, const Observed& observed,
                                   Plan plan);

}  // namespace skiff::control
