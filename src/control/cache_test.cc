#include "control/cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/random.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using namespace std::chrono_literals;

const api::Resource kMaps = {.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
const api::Resource kOwners = {.version = "v1", .plural = "secrets", .kind = "Secret"};

json::value map_of(std::string_view name, std::string_view value, std::string_view owner) {
  json::value out = {{"metadata",
                      {{"namespace", "a"},
                       {"name", json::string(name)},
                       {"managedFields", json::array{json::object{{"manager", "m"}}}}}},
                     {"data", {{"k", json::string(value)}}}};
  if (!owner.empty()) {
    json::set(out, {"metadata", "ownerReferences"},
              json::array{json::object{{"apiVersion", "v1"},
                                       {"kind", "ConfigMap"},
                                       {"name", "owner"},
                                       {"uid", json::string(owner)},
                                       {"controller", true}}});
  }
  return out;
}

// Something of another kind, whose uid it is: what an owner leaves behind goes.
std::string make_owner(testing::MemoryServer& server, std::string_view name) {
  const auto made = server.write(
      {.resource = kOwners,
       .ns = "a",
       .body = json::object{{"metadata", {{"namespace", "a"}, {"name", json::string(name)}}}}});
  return made ? std::string(api::uid(*made)) : std::string();
}

std::string text(const Object& object) {
  return object == nullptr ? "nothing" : json::serialize(*object);
}

struct RestTest : ::testing::Test {
  RestTest() { server.gives_sources = true; }

  void create(std::string_view name, std::string_view owner = {}) {
    ASSERT_TRUE(server.write({.resource = kMaps, .ns = "a", .body = map_of(name, "first", owner)}));
  }
  void change(std::string_view name, std::string_view value) {
    ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                              .resource = kMaps,
                              .ns = "a",
                              .name = std::string(name),
                              .body = json::object{{"data", {{"k", json::string(value)}}}}}));
  }
  void remove(std::string_view name) {
    ASSERT_TRUE(server.write(
        {.verb = client::Verb::kDelete, .resource = kMaps, .ns = "a", .name = std::string(name)}));
  }
  // What happens within a turn of the loop at that time.
  std::vector<Change> turn(Duration now) {
    auto changes = cache.poll(now);
    EXPECT_TRUE(changes);
    cache.let_rest(now);
    return changes.value_or(std::vector<Change>{});
  }
  static Key key(std::string_view name) { return {.ns = "a", .name = std::string(name)}; }

  env::sim::Clock clock;
  testing::MemoryServer server{clock};
  Cache cache{server, kMaps, [] {}};
  const std::string large = make_owner(server, "large");
  const std::string small = make_owner(server, "small");
};

TEST_F(RestTest, what_nobody_looks_at_rests_and_is_the_same_when_it_wakes) {
  create("x");
  const std::string before = text(turn(0s).at(0).after);
  turn(1s);
  EXPECT_EQ(cache.awake(), 1U) << "it is too early";
  ASSERT_TRUE(cache.next_rest());
  turn(*cache.next_rest());
  EXPECT_EQ(cache.awake(), 0U);
  EXPECT_EQ(cache.next_rest(), std::nullopt) << "nobody has to come back for those that rest";
  EXPECT_EQ(server.read_again(), 0U);
  EXPECT_EQ(text(cache.get(key("x"))), before);
  EXPECT_EQ(before.find("managedFields"), std::string::npos);
  EXPECT_EQ(cache.get(key("x")), cache.get(key("x"))) << "one for all who look at it";
  EXPECT_EQ(server.read_again(), 1U);
  EXPECT_EQ(cache.awake(), 1U);
}

TEST_F(RestTest, what_is_looked_at_does_not_rest) {
  create("x");
  for (Duration now = 0s; now < 60s; now += 1s) {
    turn(now);
    EXPECT_NE(cache.get(key("x")), nullptr);
  }
  EXPECT_EQ(server.read_again(), 0U);
}

TEST_F(RestTest, a_change_of_what_rests_tells_what_was_before) {
  create("x", small);
  turn(0s);
  turn(60s);
  ASSERT_EQ(cache.awake(), 0U);
  change("x", "second");
  auto changes = turn(61s);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(json::get_string(*changes[0].before, {"data", "k"}), "first");
  EXPECT_EQ(json::get_string(*changes[0].after, {"data", "k"}), "second");
  changes.clear();  // what is held does not rest
  turn(180s);
  ASSERT_EQ(cache.awake(), 0U);
  EXPECT_EQ(json::get_string(*cache.owned_by(small).at(0), {"data", "k"}), "second");
}

TEST_F(RestTest, what_is_removed_while_it_rests_leaves_nothing_behind) {
  create("x", small);
  turn(0s);
  turn(60s);
  ASSERT_EQ(cache.awake(), 0U);
  remove("x");
  const auto changes = turn(61s);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(json::get_string(*changes[0].before, {"data", "k"}), "first");
  EXPECT_EQ(changes[0].after, nullptr);
  EXPECT_TRUE(cache.owned_by(small).empty());
  EXPECT_EQ(cache.get(key("x")), nullptr);
  EXPECT_TRUE(cache.keys().empty());
  EXPECT_EQ(cache.awake(), 0U);
}

TEST_F(RestTest, a_list_that_says_nothing_new_wakes_nobody) {
  create("x");
  create("y");
  turn(0s);
  turn(60s);
  remove("y");
  change("x", "second");
  turn(61s);
  turn(180s);
  ASSERT_EQ(cache.awake(), 0U);
  const std::size_t before = server.read_again();
  cache.distrust();
  EXPECT_TRUE(turn(181s).empty());
  EXPECT_EQ(server.read_again(), before);
  EXPECT_EQ(cache.awake(), 0U);
}

TEST_F(RestTest, a_list_with_another_of_the_same_name_tells_both) {
  create("x");
  turn(0s);
  turn(60s);
  ASSERT_EQ(cache.awake(), 0U);
  remove("x");
  create("x");
  server.forget_history();
  const auto changes = turn(61s);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].after, nullptr);
  EXPECT_EQ(changes[1].before, nullptr);
}

TEST_F(RestTest, what_is_woken_again_and_again_rests_no_more) {
  create("beat");
  turn(0s);
  std::size_t early = 0;
  for (Duration now = 1s; now < 300s; now += 1s) {
    if (now % 10s == 0s) change("beat", fmt::format("{}", now.count()));
    turn(now);
    if (now == 60s) early = server.read_again();
  }
  EXPECT_GT(early, 0U);
  EXPECT_EQ(server.read_again(), early);
}

TEST_F(RestTest, what_somebody_holds_does_not_rest) {
  create("x");
  turn(0s);
  Object held = cache.get(key("x"));
  turn(60s);
  EXPECT_EQ(cache.get(key("x")), held) << "there would be two of it";
  held = nullptr;
  turn(600s);
  EXPECT_EQ(cache.awake(), 0U);
}

TEST_F(RestTest, what_one_owner_has_very_many_of_does_not_rest) {
  for (int i = 0; i < 200; ++i) create(fmt::format("many-{}", i), large);
  for (int i = 0; i < 5; ++i) create(fmt::format("few-{}", i), small);
  for (Duration now = 0s; now < 60s; now += 1s) turn(now);
  EXPECT_EQ(cache.awake(), 200U);
  EXPECT_EQ(cache.owned_by(large).size(), 200U);
  EXPECT_EQ(server.read_again(), 0U) << "all of them would have been parsed in one turn";
}

TEST_F(RestTest, what_is_asked_for_together_with_very_many_does_not_rest) {
  std::vector<Key> many;
  for (int i = 0; i < 200; ++i) {
    create(fmt::format("many-{}", i));
    many.push_back(key(fmt::format("many-{}", i)));
  }
  create("one");
  for (Duration now = 0s; now < 60s; now += 1s) turn(now);
  ASSERT_EQ(cache.awake(), 0U);
  many.push_back(key("nobody"));
  EXPECT_EQ(cache.get_all(many).size(), 200U);
  EXPECT_EQ(cache.get_all({key("one"), key("nobody")}).size(), 1U);
  EXPECT_EQ(server.read_again(), 201U);
  for (Duration now = 60s; now < 300s; now += 1s) turn(now);
  EXPECT_EQ(cache.awake(), 200U);
  EXPECT_EQ(cache.get_all(many).size(), 200U);
  EXPECT_EQ(server.read_again(), 201U) << "all of them would have been parsed in one turn again";
}

TEST_F(RestTest, many_are_let_go_in_portions) {
  for (int i = 0; i < 1000; ++i) create(fmt::format("x-{}", i));
  do {
    (void)cache.poll(0s);
  } while (cache.more());
  ASSERT_EQ(cache.awake(), 1000U);
  cache.let_rest(60s);
  EXPECT_GE(cache.awake(), 800U);
  EXPECT_EQ(cache.next_rest() <= 60s, true) << "the next turn comes at once";
  for (int i = 0; i < 20; ++i) cache.let_rest(60s);
  EXPECT_EQ(cache.awake(), 0U);
}

// The same random life seen by a cache whose objects rest and by one whose objects do not.
TEST(RestingCache, shows_the_same_as_a_cache_that_never_rests) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    env::sim::Clock clock;
    testing::MemoryServer server(clock, seed);
    Cache awake(server, kMaps, [] {});
    Cache tired(server, kMaps, [] {});
    const std::string first = make_owner(server, "first");
    const std::string second = make_owner(server, "second");
    Duration now = 0s;
    for (int i = 0; i < 200; ++i) {
      const std::string name = fmt::format("{}", random.below(6));
      const std::string owner = random.chance(30) ? "" : random.chance(50) ? first : second;
      if (random.chance(50)) {
        (void)server.write({.resource = kMaps, .ns = "a", .body = map_of(name, "first", owner)});
      } else if (random.chance(60)) {
        json::value body = map_of(name, fmt::format("{}", i), owner);
        (void)server.write({.verb = client::Verb::kMergePatch,
                            .resource = kMaps,
                            .ns = "a",
                            .name = name,
                            .body = std::move(body)});
      } else {
        (void)server.write(
            {.verb = client::Verb::kDelete, .resource = kMaps, .ns = "a", .name = name});
      }
      if (random.chance(10)) server.forget_history();
      now += std::chrono::seconds(random.below(20));
      if (random.chance(40)) continue;
      server.gives_sources = false;
      const auto expected = awake.poll(now);
      server.gives_sources = true;
      const auto changes = tired.poll(now);
      ASSERT_TRUE(expected && changes);
      ASSERT_EQ(changes->size(), expected->size()) << "seed " << seed << ", step " << i;
      for (std::size_t c = 0; c < changes->size(); ++c) {
        ASSERT_EQ(text((*changes)[c].before), text((*expected)[c].before)) << "seed " << seed;
        ASSERT_EQ(text((*changes)[c].after), text((*expected)[c].after)) << "seed " << seed;
      }
      tired.let_rest(now);
      if (random.chance(50)) continue;
      ASSERT_EQ(tired.keys(), awake.keys());
      for (const Key& key : awake.keys()) ASSERT_EQ(text(tired.get(key)), text(awake.get(key)));
      for (const std::string& uid : {first, second}) {
        const auto mine = tired.owned_by(uid);
        const auto theirs = awake.owned_by(uid);
        ASSERT_EQ(mine.size(), theirs.size()) << "seed " << seed << ", step " << i;
        for (std::size_t o = 0; o < mine.size(); ++o) ASSERT_EQ(text(mine[o]), text(theirs[o]));
      }
    }
    EXPECT_GT(server.read_again(), 0U) << "nothing rested in seed " << seed;
  }
}

// Ten thousand jobs that are kept must cost nothing while nothing happens to them.
TEST(RestingCache, a_runtime_in_which_nothing_happens_reads_nothing_again) {
  env::sim::Clock clock;
  testing::MemoryServer server(clock);
  server.gives_sources = true;
  Runtime runtime(server, clock);
  int plans = 0;
  runtime.add(Controller{.name = "counter", .root = kMaps, .plan = [&](const Observed&, Time) {
                           ++plans;
                           return Plan{};
                         }});
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(server.write(
        {.resource = kMaps, .ns = "a", .body = map_of(fmt::format("x-{}", i), "v", "")}));
  }
  Duration wait = runtime.pump();
  for (int i = 0; i < 1000 && wait < 1min; ++i) {
    clock.advance(wait);
    wait = runtime.pump();
  }
  EXPECT_GE(wait, 1min) << "no timer is left";
  EXPECT_EQ(runtime.cache(kMaps.key())->awake(), 0U);
  EXPECT_EQ(plans, 300);
  EXPECT_EQ(server.read_again(), 0U);
  ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                            .resource = kMaps,
                            .ns = "a",
                            .name = "x-7",
                            .body = json::object{{"data", {{"k", "w"}}}}}));
  runtime.pump();
  EXPECT_EQ(plans, 301);
  EXPECT_EQ(server.read_again(), 1U) << "what it was before";
}

}  // namespace
}  // namespace skiff::control
