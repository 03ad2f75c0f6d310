#include "env/posix/clock.h"

#include <chrono>

namespace skiff::env::posix {

Time Clock::now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

Duration Clock::elapsed() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace skiff::env::posix
