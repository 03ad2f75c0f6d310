// The door to the machine for everything that decides: time and entropy. Real ones in env/posix,
// virtual ones in env/sim.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace skiff::env {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;          // wall clock, for stamps
  virtual Duration elapsed() const = 0;  // never steps back, for intervals
};

class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual std::uint64_t seed() = 0;
};

}  // namespace skiff::env
