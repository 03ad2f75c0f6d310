// A plan and the writes it comes to. All of it is pure, so it can be made on any thread.
#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "client/client.h"
#include "control/controller.h"

namespace skiff::control {

struct Decision {
  Object root = {};            // as it was observed
  bool after_refusal = false;  // Observed::refused was set
  bool empty = true;           // Plan::empty()
  std::vector<Note> notes = {};
  std::optional<Duration> requeue_after = {};
  std::vector<client::Write> writes = {};
  std::vector<client::Write> asked = {};  // the same without their bodies, for the answer
};

Decision decide(const Controller& controller, const Observed& observed, Time now);

}  // namespace skiff::control
