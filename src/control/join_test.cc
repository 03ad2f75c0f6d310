#include "control/join.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using testing::kPods;
using testing::kServices;

std::vector<std::string> words(const json::value& list) {
  return list.is_array() ? json::strings(list.get_array()) : std::vector<std::string>{};
}

Related by_words() {
  return {.resource = kPods,
          .wants = [](const json::value& root) { return words(root.at("words")); },
          .has = [](const json::value& object) { return words(object.at("words")); }};
}

json::value object(std::string_view ns, std::string_view name, json::array list) {
  return {{"metadata", {{"namespace", json::string(ns)}, {"name", json::string(name)}}},
          {"words", std::move(list)}};
}

Object shared(json::value value) { return std::make_shared<const json::value>(std::move(value)); }

// A join and the cache beside it.
struct Desk {
  explicit Desk(Related related) : join(std::move(related)) {}

  void object_changed(const Object& before, const Object& after) {
    join.object_changed(before, after);
    if (before != nullptr) objects.erase(key_of(*before));
    if (after != nullptr) objects[key_of(*after)] = after;
  }
  std::vector<Object> seen_by(const json::value& root) const {
    std::vector<Object> out;
    for (const Key& key : join.seen_by(root)) out.push_back(objects.at(key));
    return out;
  }

  Join join;
  std::map<Key, Object> objects = {};
};

std::vector<std::string> names(const std::vector<Object>& objects) {
  std::vector<std::string> out;
  for (const Object& o : objects) out.push_back(key_of(*o).name);
  return out;
}

TEST(Join, what_has_no_namespace_is_seen_from_every_one) {
  Related nodes = by_words();
  nodes.resource = {.version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  Desk desk(nodes);
  const Object node = shared(object("", "n", {"x"}));
  desk.object_changed(nullptr, node);
  desk.join.root_changed(nullptr, shared(object("a", "first", {"x"})));
  desk.join.root_changed(nullptr, shared(object("b", "second", {"x"})));
  EXPECT_EQ(names(desk.seen_by(object("b", "second", {"x"}))), std::vector<std::string>{"n"});
  EXPECT_EQ(desk.join.roots_of(*node).size(), 2U);
}

TEST(Join, a_root_sees_what_has_all_its_words_in_its_own_namespace) {
  Desk desk(by_words());
  desk.object_changed(nullptr, shared(object("a", "both", {"x", "y"})));
  desk.object_changed(nullptr, shared(object("a", "half", {"x"})));
  desk.object_changed(nullptr, shared(object("b", "elsewhere", {"x", "y"})));
  EXPECT_EQ(names(desk.seen_by(object("a", "r", {"x", "y"}))), std::vector<std::string>{"both"});
  EXPECT_EQ(names(desk.seen_by(object("a", "r", {"x"}))),
            (std::vector<std::string>{"both", "half"}));
}

TEST(Join, shows_the_newest_state_of_what_has_the_same_words_as_before) {
  Desk desk(by_words());
  const Object first = shared(object("a", "p", {"x", "y"}));
  const Object second = shared(object("a", "p", {"x", "y"}));
  const Object third = shared(object("a", "p", {"y", "z"}));
  const json::value root = object("a", "r", {"y"});
  desk.object_changed(nullptr, first);
  desk.object_changed(first, second);
  EXPECT_EQ(desk.seen_by(root), std::vector<Object>{second});
  desk.object_changed(second, third);
  EXPECT_EQ(desk.seen_by(root), std::vector<Object>{third});
  EXPECT_TRUE(desk.seen_by(object("a", "r", {"x"})).empty());
  desk.object_changed(third, nullptr);
  EXPECT_TRUE(desk.seen_by(root).empty());
}

TEST(Join, a_root_without_words_sees_nothing_and_is_told_of_nothing) {
  Desk desk(by_words());
  const Object root = shared(object("a", "r", {}));
  desk.join.root_changed(nullptr, root);
  desk.object_changed(nullptr, shared(object("a", "o", {"x"})));
  EXPECT_TRUE(desk.seen_by(*root).empty());
  EXPECT_TRUE(desk.join.roots_of(object("a", "o", {"x"})).empty());
}

// Random changes; after each one the indexes must agree with a plain look at everything.
TEST(Join, agrees_with_looking_at_everything) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    Desk desk(by_words());
    std::map<Key, Object> roots, objects;
    const auto some = [&] {
      json::array out;
      for (const std::string_view word : {"p", "q", "r", "s"}) {
        if (random.chance(50)) out.emplace_back(json::string(word));
      }
      return out;
    };
    for (int i = 0; i < 200; ++i) {
      const bool root = random.chance(50);
      auto& side = root ? roots : objects;
      const Key key{.ns = random.chance(50) ? "a" : "b",
                    .name = fmt::format("{}", random.below(6))};
      const Object before = side.contains(key) ? side[key] : nullptr;
      const Object after = random.chance(25) ? nullptr : shared(object(key.ns, key.name, some()));
      root ? desk.join.root_changed(before, after) : desk.object_changed(before, after);
      side[key] = after;
      std::erase_if(side, [](const auto& entry) { return entry.second == nullptr; });

      std::set<std::pair<Key, Key>> expected, seen, told;
      for (const auto& [r, wants] : roots) {
        for (const auto& [o, has] : objects) {
          const auto have = words(has->at("words"));
          const auto want = words(wants->at("words"));
          if (r.ns == o.ns && !want.empty() && std::ranges::includes(have, want)) {
            expected.emplace(r, o);
          }
        }
        for (const Object& o : desk.seen_by(*wants)) seen.emplace(r, key_of(*o));
      }
      for (const auto& [o, has] : objects) {
        for (const Key& r : desk.join.roots_of(*has)) told.emplace(r, o);
      }
      ASSERT_EQ(seen, expected) << "seed " << seed << ", change " << i;
      ASSERT_EQ(told, expected) << "seed " << seed << ", change " << i;
    }
  }
}

TEST(Join, is_what_a_controller_is_woken_by_and_observes) {
  env::sim::Clock clock = env::sim::Clock();
  testing::MemoryServer server{clock};
  Runtime runtime{server, clock};
  std::vector<std::vector<std::string>> plans;
  runtime.add(Controller{.name = "looker",
                         .root = kServices,
                         .seen = {by_words()},
                         .plan = [&](const Observed& observed, Time) {
                           plans.push_back(names(observed.seen[0]));
                           return Plan{};
                         }});
  const auto make = [&](const api::Resource& resource, std::string_view name, json::array list) {
    json::value body = object("ns", name, std::move(list));
    ASSERT_TRUE(server.write({.resource = resource, .ns = "ns", .body = std::move(body)}));
    runtime.pump();
  };
  make(kPods, "early", {"x"});
  make(kServices, "s", {"x"});
  make(kPods, "other", {"y"});
  make(kPods, "late", {"x"});
  ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                            .resource = kPods,
                            .ns = "ns",
                            .name = "early",
                            .body = json::object{{"words", json::array{"z"}}}}));
  runtime.pump();
  ASSERT_TRUE(
      server.write({.verb = client::Verb::kDelete, .resource = kPods, .ns = "ns", .name = "late"}));
  runtime.pump();
  EXPECT_EQ(plans,
            (std::vector<std::vector<std::string>>{{"early"}, {"early", "late"}, {"late"}, {}}));
}

// All that rest would be parsed in one turn, and again after every time of quiet.
TEST(Join, of_very_many_that_a_root_looks_at_none_is_read_twice) {
  env::sim::Clock clock;
  testing::MemoryServer server(clock);
  server.gives_sources = true;
  Runtime runtime(server, clock);
  constexpr std::size_t kMany = 200;
  std::size_t seen = 0;
  runtime.add(Controller{.name = "looker",
                         .root = kServices,
                         .seen = {by_words()},
                         .plan = [&](const Observed& observed, Time) {
                           seen = observed.seen[0].size();
                           return Plan{};
                         }});
  const auto make = [&](const api::Resource& resource, std::string_view name) {
    json::value body = object("ns", name, {"x"});
    ASSERT_TRUE(server.write({.resource = resource, .ns = "ns", .body = std::move(body)}));
  };
  const auto quiet = [&] {
    for (int i = 0; i < 300; ++i) {
      runtime.pump();
      clock.advance(std::chrono::seconds(1));
    }
  };
  for (std::size_t i = 0; i < kMany; ++i) make(kPods, fmt::format("p-{}", i));
  quiet();
  EXPECT_EQ(runtime.cache(kPods.key())->awake(), 0U);
  make(kServices, "s");
  quiet();
  EXPECT_EQ(seen, kMany);
  const std::size_t before = server.read_again();
  make(kPods, "new");
  quiet();
  EXPECT_EQ(seen, kMany + 1);
  EXPECT_LE(server.read_again(), before + 1) << "the service itself may have rested";
}

}  // namespace
}  // namespace skiff::control
