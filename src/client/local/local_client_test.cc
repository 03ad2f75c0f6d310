#include "client/local/local_client.h"

#include <deque>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::client {
namespace {

const api::Resource kMaps{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};

Write create(std::string_view name) {
  return {.resource = kMaps,
          .ns = "default",
          .body = json::object{{"metadata", {{"name", json::string(name)}}}}};
}

TEST(LocalClient, ReadsWhatItWrites) {
  apiserver::World world;
  LocalClient client(*world.server, [](auto fn) { fn(); });
  ASSERT_TRUE(client.write(create("a")));
  const auto got = client.get(kMaps, "default", "a");
  ASSERT_TRUE(got);
  EXPECT_EQ(api::name(*got), "a");
  EXPECT_EQ(client.get(kMaps, "default", "b").error().code, Code::kNotFound);
  const auto list = client.list(kMaps, "", {.field_selector = "metadata.name=a"});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->revision, world.store->revision());
}

TEST(LocalClient, SubmitsOneTransaction) {
  apiserver::World world;
  LocalClient client(*world.server, [](auto fn) { fn(); });
  const auto commits = world.store->stats().commits;
  std::vector<Result<json::value>> results;
  client.submit({create("a"), create("b")}, [&](auto r) { results = std::move(r); });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0] && results[1]);
  world.flush();
  EXPECT_LE(world.store->stats().commits, commits + 1);
  client.submit({create("c"), create("a")}, [&](auto r) { results = std::move(r); });
  EXPECT_EQ(results.back().error().code, Code::kAlreadyExists);
  EXPECT_FALSE(client.get(kMaps, "default", "c"));
}

TEST(LocalClient, SeesEventsBeforeTheyAreOnDisk) {
  apiserver::World world;
  LocalClient client(*world.server, [](auto fn) { fn(); });
  int ready = 0;
  const auto watch = client.watch(kMaps, world.store->revision(), [&] { ++ready; });
  ASSERT_TRUE(watch);
  ASSERT_TRUE(client.write(create("a")));
  const auto events = (*watch)->poll();
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].type, EventType::kAdded);
  EXPECT_GT(ready, 0);
}

TEST(LocalClient, IsSafeWhenTheDiskHasIt) {
  apiserver::World world;
  std::deque<std::function<void()>> queue;
  LocalClient client(*world.server, [&](auto fn) { queue.push_back(std::move(fn)); });
  ASSERT_TRUE(client.write(create("a")));
  bool safe = false;
  client.when_safe([&] { safe = true; });
  EXPECT_TRUE(queue.empty());
  world.flush();
  ASSERT_EQ(queue.size(), 1u);
  queue.front()();
  EXPECT_TRUE(safe);
}

}  // namespace
}  // namespace skiff::client
