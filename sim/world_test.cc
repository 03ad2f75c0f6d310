#include "sim/world.h"

#include <gtest/gtest.h>

#include "sim/echo.h"

namespace skiff::sim {
namespace {

std::optional<std::string> run(std::uint64_t seed, Mistake mistake) {
  const auto workload = make_echo(mistake);
  return World(Options::from_seed(seed), *workload).run();
}

// The first failure among a few seeds.
std::string first_failure(Mistake mistake) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    if (auto failure = run(seed, mistake)) return *failure;
  }
  return "none";
}

TEST(World, a_sound_workload_comes_to_its_end_under_faults) {
  EXPECT_EQ(first_failure(Mistake::kNone), "none");
}

TEST(World, the_same_seed_gives_the_same_run) {
  for (const std::uint64_t seed : {3U, 4U}) {
    std::string told[2];
    for (std::string& text : told) {
      const auto workload = make_echo();
      World world(Options::from_seed(seed), *workload, [&](std::string_view line) {
        text += line;
        text += '\n';
      });
      EXPECT_EQ(world.run(), std::nullopt);
    }
    EXPECT_FALSE(told[0].empty());
    EXPECT_EQ(told[0], told[1]);
  }
}

TEST(World, a_job_that_never_looks_again_is_caught) {
  EXPECT_NE(first_failure(Mistake::kStopsAfterCrash).find("liveness"), std::string::npos);
}

}  // namespace
}  // namespace skiff::sim
