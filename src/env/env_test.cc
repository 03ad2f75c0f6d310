#include "env/env.h"

#include <gtest/gtest.h>

#include "env/posix/clock.h"
#include "env/posix/entropy.h"
#include "env/sim/clock.h"
#include "env/sim/entropy.h"

namespace skiff::env {
namespace {

using namespace std::chrono_literals;

TEST(PosixClock, TellsATimeOfThisCenturyAndNeverStepsBack) {
  const posix::Clock clock;
  EXPECT_GT(rfc3339(clock.now()), "2024-01-01T00:00:00Z");
  EXPECT_LT(rfc3339(clock.now()), "2100-01-01T00:00:00Z");
  const Duration before = clock.elapsed();
  EXPECT_GE(clock.elapsed(), before);
}

TEST(PosixEntropy, GivesDifferentSeeds) {
  posix::Entropy entropy;
  EXPECT_NE(entropy.seed(), entropy.seed());
}

TEST(SimClock, MovesOnlyWhenItIsMoved) {
  sim::Clock clock;
  EXPECT_EQ(rfc3339(clock.now()), "2026-01-01T00:00:00Z");
  clock.advance(90s);
  EXPECT_EQ(rfc3339(clock.now()), "2026-01-01T00:01:30Z");
  EXPECT_EQ(clock.elapsed(), 90s);
}

TEST(SimClock, SettingTheWallClockLetsNoTimePass) {
  sim::Clock clock;
  clock.advance(5s);
  clock.set(*parse_time("2025-06-01T12:00:00Z"));
  EXPECT_EQ(rfc3339(clock.now()), "2025-06-01T12:00:00Z");
  EXPECT_EQ(clock.elapsed(), 5s);
}

TEST(SimClock, AdvanceToNeverGoesBack) {
  sim::Clock clock;
  const Time start = clock.now();
  clock.advance_to(start + 3s);
  clock.advance_to(start + 1s);
  EXPECT_EQ(clock.now(), start + 3s);
}

TEST(SimEntropy, RepeatsItselfFromTheSameSeed) {
  sim::Entropy a(7), b(7), c(8);
  const std::uint64_t first = a.seed();
  EXPECT_EQ(first, b.seed());
  EXPECT_NE(first, c.seed());
}

}  // namespace
}  // namespace skiff::env
