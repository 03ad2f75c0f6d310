// How long a plan takes as jobs grow, and that it grows no faster than they do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "features/training/testing/world.h"

namespace skiff::training {
namespace {

using Clock = std::chrono::steady_clock;

// The best of several runs: the others tell about the machine, not about the plan.
double micros_per_plan(const JobKind& kind, std::int64_t replicas) {
  testing::World world(kind, testing::JobBuilder(kind)
                                 .role("Worker", replicas, "OnFailure")
                                 .run("backoffLimit", 100)
                                 .build());
  // TF_CONFIG of ten thousand replicas is gigabytes; a settled job costs the same without it.
  const json::value root = world.root;
  control::Observed observed{.root = testing::share(root), .owned = {{}, {}}};
  for (std::int64_t i = 0; i < replicas; ++i) {
    observed.owned[0].push_back(testing::share(testing::replica_pod("worker", i, "Running")));
    observed.owned[1].push_back(testing::share(testing::replica_service("worker", i)));
  }
  const control::Plan first = plan_job(kind, observed, world.now);
  EXPECT_TRUE(first.writes.empty());
  json::value settled = root;
  json::set(settled, {"status"}, first.status.value());
  observed.root = testing::share(std::move(settled));
  double best = 1e12;
  for (int run = 0; run < 7; ++run) {
    const Clock::time_point begin = Clock::now();
    const control::Plan plan = plan_job(kind, observed, world.now);
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    EXPECT_TRUE(plan.empty());
  }
  return best;
}

TEST(PlanSpeed, GrowsWithTheReplicasAndNoFaster) {
  for (const JobKind* kind : {&tensorflow(), &pytorch()}) {
    const double hundred = micros_per_plan(*kind, 100);
    const double thousand = micros_per_plan(*kind, 1'000);
    const double ten_thousand = micros_per_plan(*kind, 10'000);
    fmt::print("{}: {:.0f} us at 100 replicas, {:.0f} at 1000, {:.0f} at 10000\n",
               kind->resource.kind, hundred, thousand, ten_thousand);
    // Ten times the replicas cost ten times the time, more where they leave the caches; a quadratic
    // loop would cost a hundred times.
    EXPECT_LT(ten_thousand, 40 * thousand);
    EXPECT_LT(thousand, 40 * hundred);
  }
}

}  // namespace
}  // namespace skiff::training
