// How long a plan takes as jobs grow, and that it grows no faster than they do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using Clock = std::chrono::steady_clock;

const Time kPlanSpeedNow = *parse_time("2026-11-15T12:00:00Z");

// As a cache holds it: read from the text that came over the watch, in one go.
Object as_cached(const json::value& object) {
  return testing::share(testing::must_parse(json::serialize(object)));
}

// A job whose pods all run and that needs nothing.
control::Observed settled_job(const JobKind& kind, std::int64_t replicas) {
  json::value root = testing::JobBuilder(kind)
                         .role("Worker", replicas, "OnFailure")
                         .run("backoffLimit", 100)
                         .build();
  control::Observed observed{.root = testing::share(root), .owned = {{}, {}}};
  for (std::int64_t i = 0; i < replicas; ++i) {
    observed.owned[0].push_back(as_cached(testing::replica_pod("worker", i, "Running")));
    observed.owned[1].push_back(as_cached(testing::replica_service("worker", i)));
  }
  const control::Plan first = plan_job(kind, observed, kPlanSpeedNow);
  EXPECT_TRUE(first.writes.empty());
  json::set(root, {"status"}, first.status.value());
  observed.root = testing::share(std::move(root));
  return observed;
}

// Microseconds to plan this many jobs of this size one after the other. The best of several runs:
// the others tell about the machine, not about the plan.
double micros(const JobKind& kind, int jobs, std::int64_t replicas) {
  std::vector<control::Observed> all;
  for (int i = 0; i < jobs; ++i) all.push_back(settled_job(kind, replicas));
  double best = 1e12;
  for (int run = 0; run < 7; ++run) {
    const Clock::time_point begin = Clock::now();
    for (const control::Observed& job : all)
      EXPECT_TRUE(plan_job(kind, job, kPlanSpeedNow).empty());
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return best;
}

// Ten times the replicas cost at most fifteen times as much. Other programs run beside this one, so
// one quiet measurement out of several is enough; a quadratic plan has none.
bool grows_evenly(const JobKind& kind, std::int64_t replicas) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (micros(kind, 1, 10 * replicas) < 1.5 * micros(kind, 10, replicas)) return true;
  }
  return false;
}

TEST(PlanSpeed, GrowsWithTheReplicasAndNoFaster) {
  for (const JobKind* kind : {&tensorflow(), &pytorch()}) {
    const double hundred = micros(*kind, 1, 100);
    const double thousand = micros(*kind, 1, 1'000);
    const double ten_thousand = micros(*kind, 1, 10'000);
    fmt::print("{}: {:.0f} us at 100 replicas, {:.0f} at 1000, {:.0f} at 10000\n",
               kind->resource.kind, hundred, thousand, ten_thousand);
    // One big job against ten small ones with as many replicas in all: both touch the same amount
    // of memory, so that only the plan's own growth tells them apart.
    EXPECT_TRUE(grows_evenly(*kind, 100)) << kind->resource.kind;
    EXPECT_TRUE(grows_evenly(*kind, 1'000)) << kind->resource.kind;
  }
}

}  // namespace
}  // namespace skiff::training
