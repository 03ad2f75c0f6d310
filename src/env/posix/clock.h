// The machine's own clocks.
#pragma once

#include "env/env.h"

namespace skiff::env::posix {

class Clock final : public env::Clock {
 public:
  Time now() const override;
  Duration elapsed() const override;  // since the machine started
};

}  // namespace skiff::env::posix
