#include "sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/broken_backend.h"
#include "sim/echo.h"

namespace skiff::sim {
namespace {

constexpr std::uint64_t kSeeds = 40;

std::optional<std::string> run(std::uint64_t seed, Mistake mistake, Flaw flaw) {
  const auto workload = make_echo(mistake);
  const auto make = [flaw](const Workload& w, const env::Clock& clock, std::uint64_t s) {
    return flaw == Flaw::kNone ? make_backend(w, clock, s) : make_broken_backend(flaw, w, clock, s);
  };
  return World(Options::from_seed(seed), *workload, {}, make).run();
}

// Who complains of it in a few seeds, up to the one whose complaint is looked for.
std::set<std::string> complaints(Mistake mistake, Flaw flaw, const std::string& until = {}) {
  std::set<std::string> out;
  for (std::uint64_t seed = 1; seed <= kSeeds && !out.contains(until); ++seed) {
    if (const auto failure = run(seed, mistake, flaw)) {
      out.insert(failure->substr(0, failure->find(':')));
    }
  }
  return out;
}

TEST(World, a_sound_workload_comes_to_its_end_under_faults) {
  EXPECT_EQ(complaints(Mistake::kNone, Flaw::kNone), std::set<std::string>{});
}

TEST(World, plans_are_made_apart_in_some_seeds_and_come_back_late) {
  std::set<bool> seen;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Options options = Options::from_seed(seed);
    if (!seen.insert(options.apart > Duration{0}).second) continue;
    const auto workload = make_echo();
    World world(options, *workload);
    EXPECT_EQ(world.run(), std::nullopt) << seed;
    EXPECT_EQ(world.plans_apart() > 0, options.apart > Duration{0}) << seed;
  }
  EXPECT_EQ(seen.size(), 2u) << "with and without";
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

// A checker that nothing can make fail is worth nothing.
struct Planted {
  std::string_view what;
  Mistake mistake = Mistake::kNone;
  Flaw flaw = Flaw::kNone;
  std::string noticed_by;
};

const Planted kPlanted[] = {
    {"a job that never looks again", Mistake::kStopsAfterCrash, Flaw::kNone, "liveness"},
    {"two pods for one index", Mistake::kTwoInOnePlace, Flaw::kNone, "slots"},
    {"a finished job starts again", Mistake::kReopens, Flaw::kNone, "finality"},
    {"a status that is never right", Mistake::kNeverContent, Flaw::kNone, "rest"},
    {"children outlive their owner", Mistake::kNone, Flaw::kNoGarbageCollection, "ownership"},
    {"half a gang is bound", Mistake::kNone, Flaw::kHalfTransactions, "gangs"},
    {"all pods go to one node", Mistake::kNone, Flaw::kCrowdedNode, "capacity"},
    {"lists tell of earlier revisions", Mistake::kNone, Flaw::kRevisionsGoBack, "revisions"},
    {"watches lose events", Mistake::kNone, Flaw::kLostEvents, "stream"},
    {"nothing reaches the disk", Mistake::kNone, Flaw::kNeverWrites, "durability"},
    {"nothing is synced", Mistake::kNone, Flaw::kLazySync, "durability"},
};

TEST(World, every_planted_mistake_is_noticed_by_its_checker) {
  for (const Planted& planted : kPlanted) {
    const auto found = complaints(planted.mistake, planted.flaw, planted.noticed_by);
    EXPECT_TRUE(found.contains(planted.noticed_by))
        << planted.what << " is noticed by "
        << (found.empty() ? "nobody" : "others, such as " + *found.begin());
  }
}

TEST(World, every_checker_has_a_planted_mistake) {
  for (const auto& checker : all_checkers()) {
    // What a feature promises is in checkers_test.cc.
    const std::string_view name = checker->name();
    if (name.starts_with("job-") || name.starts_with("app-")) continue;
    EXPECT_TRUE(std::ranges::any_of(kPlanted, [&](const Planted& planted) {
      return planted.noticed_by == checker->name();
    })) << checker->name();
  }
}

}  // namespace
}  // namespace skiff::sim
