#include "assembly/upkeep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "env/posix/clock.h"
#include "store/memory_journal.h"

namespace skiff::assembly {
namespace {

using namespace std::chrono_literals;

struct UpkeepTest : ::testing::Test {
  env::posix::Clock clock;
  std::unique_ptr<store::Store> store =
      *store::Store::open(store::open_memory_journal(std::make_shared<store::MemoryDisk>()),
                          store::Store::Writer::kThread);
  std::atomic<int> passes = 0;
  std::atomic<int> ticks = 0;

  void commit(int number) {
    store::Mutation made{.key = {.resource = "pods", .ns = "ns", .name = std::to_string(number)}};
    made.value = json::object{{"metadata", json::object{}}};
    ASSERT_TRUE(store->commit({std::move(made)}, store::Sync::kLazy).has_value());
  }
  template <typename Done>
  static bool comes(Done done) {
    for (int i = 0; i < 60'000 && !done(); ++i) std::this_thread::sleep_for(1ms);
    return done();
  }
};

TEST_F(UpkeepTest, looks_at_what_is_there_and_at_every_change) {
  std::atomic<store::Revision> seen = 0;
  const Upkeep upkeep(
      *store, clock,
      [&] {
        seen = store->revision();
        return false;
      },
      [&] { ++ticks; });
  EXPECT_TRUE(comes([&] { return seen == store->revision() && ticks == 1; }));
  // A change is never forgotten, whether it comes before, during or after a pass.
  for (int i = 0; i < 200; ++i) {
    commit(i);
    if (i % 20 == 0) std::this_thread::sleep_for(3ms);
    if (i % 50 != 49) continue;
    ASSERT_TRUE(comes([&] { return seen == store->revision(); }));
  }
}

TEST_F(UpkeepTest, goes_on_at_once_as_long_as_a_pass_finds_something) {
  const Upkeep upkeep(*store, clock, [&] { return ++passes % 30 != 0; }, [] {});
  EXPECT_TRUE(comes([&] { return passes >= 30; }));
}

TEST_F(UpkeepTest, goes_on_after_what_it_calls_has_thrown) {
  const Upkeep upkeep(
      *store, clock,
      [&]() -> bool {
        ++passes;
        throw std::logic_error("never thought of that");
      },
      [&] {
        ++ticks;
        throw std::logic_error("nor of this");
      });
  EXPECT_TRUE(comes([&] { return passes >= 2 && ticks >= 2; }));
}

TEST_F(UpkeepTest, many_changes_are_one_pass) {
  const auto start = clock.elapsed();
  {
    const Upkeep upkeep(
        *store, clock,
        [&] {
          ++passes;
          return false;
        },
        [] {});
    for (int i = 0; i < 3000; ++i) commit(i);
  }
  // The first one and one for each tick beside.
  const auto took = clock.elapsed() - start;
  EXPECT_LE(passes, took / Upkeep::kPace + took / 1s + 2);
}

TEST_F(UpkeepTest, stops_while_there_is_still_work_and_does_none_later) {
  {
    const Upkeep upkeep(
        *store, clock,
        [&] {
          ++passes;
          return true;
        },
        [] {});
    EXPECT_TRUE(comes([&] { return passes > 0; }));
  }
  const int then = passes;
  commit(1);
  EXPECT_EQ(passes, then);
}

}  // namespace
}  // namespace skiff::assembly
