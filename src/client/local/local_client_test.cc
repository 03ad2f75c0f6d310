#include "client/local/local_client.h"

#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::client {
namespace {

const api::Resource kMaps{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};

const api::Resource kQuotas{.version = "v1", .plural = "resourcequotas", .kind = "ResourceQuota"};

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

TEST(LocalClient, WritesALongSubmitElsewhereAndAnswersOnTheLoop) {
  apiserver::World world;
  std::deque<std::function<void()>> loop, other;
  LocalClient client(
      *world.server, [&](auto fn) { loop.push_back(std::move(fn)); },
      [&](auto fn) { other.push_back(std::move(fn)); });
  std::vector<Write> writes;
  for (std::size_t i = 0; i < kLongSubmit; ++i)
    writes.push_back(create("short-" + std::to_string(i)));
  std::size_t answers = 0;
  client.submit(writes, [&](const auto& r) { answers = r.size(); });
  EXPECT_EQ(answers, kLongSubmit);
  EXPECT_TRUE(other.empty());

  for (Write& write : writes) json::set(write.body, {"metadata", "labels"}, json::object{});
  for (std::size_t i = 0; i <= kLongSubmit; ++i) {
    if (i == writes.size()) writes.push_back(create(""));
    json::set(writes[i].body, {"metadata", "name"}, json::string("long-" + std::to_string(i)));
  }
  answers = 0;
  json::value first;
  client.submit(writes, [&](const auto& r) {
    answers = r.size();
    first = r.front().value_or(json::value());
  });
  ASSERT_EQ(other.size(), 1u);
  EXPECT_FALSE(client.get(kMaps, "default", "long-0"));
  other.front()();
  EXPECT_TRUE(client.get(kMaps, "default", "long-0"));
  EXPECT_EQ(answers, 0u);
  ASSERT_EQ(loop.size(), 1u);
  loop.front()();
  EXPECT_EQ(answers, kLongSubmit + 1);
  const auto made = client.get(kMaps, "default", "long-0");
  ASSERT_TRUE(made);
  EXPECT_EQ(first,
            json::value({{"metadata",
                          {{"name", "long-0"},
                           {"namespace", "default"},
                           {"uid", json::string(api::uid(*made))},
                           {"resourceVersion", json::string(api::resource_version(*made))}}}}))
      << "what the loop asks, and no more for it to free";
}

// A quota counts what both threads make, so each write of one undoes what the other has prepared.
TEST(LocalClient, WritesALongSubmitOnTheLoopAfterOthersWereQuickerEachTime) {
  apiserver::World world;
  std::mutex mutex;
  std::deque<std::function<void()>> loop;
  std::thread other;
  int threads = 0;
  LocalClient client(
      *world.server,
      [&](auto fn) {
        const std::lock_guard lock(mutex);
        loop.push_back(std::move(fn));
      },
      [&](auto fn) {
        ++threads;
        other = std::thread(std::move(fn));
      });
  ASSERT_TRUE(client.write(
      {.resource = kQuotas,
       .ns = "default",
       .body = json::object{{"metadata", {{"name", "q"}}},
                            {"spec", {{"hard", {{"count/configmaps", "1000000"}}}}}}}));
  world.collect();
  std::optional<bool> written;
  const auto submit = [&] {
    std::vector<Write> writes;
    for (std::size_t i = 0; i <= kLongSubmit; ++i) {
      writes.push_back(create("long-" + std::to_string(i)));
    }
    written.reset();
    client.submit(std::move(writes),
                  [&](const auto& answers) { written = answers.back().has_value(); });
  };
  submit();
  for (int i = 0; !written; ++i) {
    EXPECT_TRUE(client.write(create("small-" + std::to_string(i))));
    std::deque<std::function<void()>> posted;
    {
      const std::lock_guard lock(mutex);
      posted.swap(loop);
    }
    for (const auto& fn : posted) fn();
  }
  other.join();
  if (!*written) submit();
  EXPECT_EQ(threads, 1) << "the second time it is written here";
  if (other.joinable()) other.join();
  EXPECT_TRUE(written.value_or(false)) << "nobody else can be quicker on the loop";
  EXPECT_TRUE(client.get(kMaps, "default", "long-0"));
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

TEST(LocalClient, GivesAgainWhatItGave) {
  apiserver::World world;
  LocalClient client(*world.server, [](auto fn) { fn(); });
  ASSERT_TRUE(client.write(create("a")));
  auto list = client.list(kMaps, "", {.field_selector = "metadata.name=a"});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->sources.size(), 1u);
  const auto watch = client.watch(kMaps, list->revision, [] {});
  ASSERT_TRUE(watch);
  ASSERT_TRUE(client.write(create("b")));
  auto events = (*watch)->poll();
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  const json::value a = *list->items[0];
  const json::value b = *(*events)[0].object;
  // What somebody holds need not be made again.
  list->items.clear();
  (*events)[0].object.reset();
  for (const std::string_view name : {"a", "b"}) {
    ASSERT_TRUE(client.write({.verb = Verb::kDelete,
                              .resource = kMaps,
                              .ns = "default",
                              .name = std::string(name),
                              .body = json::object{}}));
  }
  EXPECT_EQ(*list->sources[0]->value(), a);
  EXPECT_EQ(*(*events)[0].source->value(), b) << "as it was, though it is gone";
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
