// Virtual time: it stands still until somebody moves it.
#pragma once

#include <atomic>

#include "base/check.h"
#include "env/env.h"

namespace skiff::env::sim {

// Thread-safe, so that a test may move the time while the code under test runs elsewhere.
class Clock final : public env::Clock {
 public:
  // 2026-01-01T00:00:00Z unless told otherwise: any fixed day, so that runs can be compared.
  explicit Clock(Time start = Time{Duration{1'767'225'600'000'000}})
      : wall_(start.time_since_epoch().count()) {}

  Time now() const override { return Time{Duration{wall_.load()}}; }
  Duration elapsed() const override { return Duration{elapsed_.load()}; }

  // Time passes: both clocks move.
  void advance(Duration by) {
    SKIFF_CHECK(by >= Duration::zero(), "time does not run backwards");
    wall_ += by.count();
    elapsed_ += by.count();
  }
  // Moves on to `t` where that lies ahead; for a simulator that jumps to its next timer.
  void advance_to(Time t) {
    if (const Duration ahead = t - now(); ahead > Duration::zero()) advance(ahead);
  }
  // The wall clock is set, forwards or backwards, as a person or NTP does: no time passes.
  void set(Time t) { wall_ = t.time_since_epoch().count(); }

 private:
  std::atomic<Duration::rep> wall_;
  std::atomic<Duration::rep> elapsed_ = 0;
};

}  // namespace skiff::env::sim
