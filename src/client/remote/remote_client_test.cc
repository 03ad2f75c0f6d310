#include "client/remote/remote_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>
#include <thread>

#include "api/meta.h"
#include "client/remote/remote_watch.h"
#include "client/remote/scripted_server.h"

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

const api::Resource kRemotePods{.version = "v1", .plural = "pods", .kind = "Pod"};

// Functions posted to a loop that the test runs.
class Loop {
 public:
  RemoteClient::Post post() {
    return [this](std::function<void()> fn) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(fn));
      changed_.notify_all();
    };
  }
  bool run_one() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 60s, [&] { return !queue_.empty(); })) return false;
    const auto fn = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    fn();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
};

TEST(RemoteClient, GetsAnObjectAsWhoItIs) {
  Scripted server;
  server.say("GET /api/v1/namespaces/a/pods/p", 200, R"({"metadata":{"name":"p"}})");
  RemoteClient client(server.access(), {});
  const auto pod = client.get(kRemotePods, "a", "p");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(api::name(*pod), "p");
  EXPECT_EQ(server.authorization(), "Bearer secret");
  EXPECT_EQ(client.get(kRemotePods, "a", "q").error().code, Code::kNotFound);
}

TEST(RemoteClient, ListsAllPagesAndNamesTheirKind) {
  Scripted server;
  server.say("GET /api/v1/pods?labelSelector=x&limit=2", 200,
             R"({"metadata":{"resourceVersion":"9","continue":"t"},"items":[{"a":1},{"a":2}]})");
  server.say("GET /api/v1/pods?labelSelector=x&limit=2&continue=t", 200,
             R"({"metadata":{"resourceVersion":"9"},"items":[{"a":3,"kind":"Own"}]})");
  RemoteClient client(server.access(), {}, {.page_items = 2});
  const auto list = client.list(kRemotePods, "", {.label_selector = "x"});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->revision, 9U);
  ASSERT_EQ(list->items.size(), 3U);
  EXPECT_EQ(json::serialize(*list->items[0]), R"({"a":1,"apiVersion":"v1","kind":"Pod"})");
  EXPECT_EQ(api::kind(*list->items[2]), "Own");
}

TEST(RemoteClient, ListsAtOnceWhenTheServerForgetsBetweenPages) {
  Scripted server;
  server.say("GET /api/v1/pods?limit=2", 200,
             R"({"metadata":{"resourceVersion":"1","continue":"t"},"items":[{}]})");
  server.say("GET /api/v1/pods?limit=2&continue=t", 410,
             R"({"kind":"Status","code":410,"reason":"Expired"})");
  server.say("GET /api/v1/pods", 200, R"({"metadata":{"resourceVersion":"5"},"items":[{},{},{}]})");
  RemoteClient client(server.access(), {}, {.page_items = 2});
  const auto list = client.list(kRemotePods, "", {});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->revision, 5U);
  EXPECT_EQ(list->items.size(), 3U);
}

TEST(RemoteClient, AFailedPreconditionOfAPatchIsAConflict) {
  const std::string invalid = R"({"kind":"Status","code":422,"reason":"Invalid","message":"m"})";
  struct Case {
    std::string_view name, now;
    Code code;
  };
  const Case cases[] = {
      {"the object is another one", R"({"metadata":{"uid":"v"}})", Code::kConflict},
      {"the patch itself is invalid", R"({"metadata":{"uid":"u"}})", Code::kInvalid},
  };
  for (const Case& c : cases) {
    for (const Verb verb : {Verb::kMergePatch, Verb::kJsonPatch}) {
      SCOPED_TRACE(c.name);
      Scripted server;
      server.say("PATCH /api/v1/namespaces/a/pods/p", 422, invalid);
      server.say("GET /api/v1/namespaces/a/pods/p", 200, std::string(c.now));
      RemoteClient client(server.access(), {});
      const auto result = client.write(
          {.verb = verb, .resource = kRemotePods, .ns = "a", .name = "p", .body = {}, .uid = "u"});
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, c.code);
    }
  }
}

TEST(RemoteClient, SubmitsInOrderAndStopsAtTheFirstFailure) {
  Scripted server;
  server.say("POST /api/v1/namespaces/a/pods?fieldValidation=Ignore", 201, R"({"n":1})");
  server.say("DELETE /api/v1/namespaces/a/pods/x", 409,
             R"({"kind":"Status","code":409,"reason":"Conflict"})");
  Loop loop;
  RemoteClient client(server.access(), loop.post());
  const Write create{
      .verb = Verb::kCreate, .resource = kRemotePods, .ns = "a", .body = json::object{}};
  const Write remove{
      .verb = Verb::kDelete, .resource = kRemotePods, .ns = "a", .name = "x", .uid = "u"};
  std::vector<Result<json::value>> results;
  std::thread::id thread;
  client.submit({create, remove, create}, [&](std::vector<Result<json::value>> all) {
    results = std::move(all);
    thread = std::this_thread::get_id();
  });
  ASSERT_TRUE(loop.run_one());
  EXPECT_EQ(thread, std::this_thread::get_id());
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().code, Code::kConflict);
  EXPECT_EQ(server.asked(),
            (std::vector<std::string>{"POST /api/v1/namespaces/a/pods?fieldValidation=Ignore",
                                      "DELETE /api/v1/namespaces/a/pods/x"}));
  EXPECT_TRUE(server.last_body().contains(R"("preconditions":{"uid":"u"})"));
}

TEST(RemoteClient, WritesEventsWhenNothingElseWaits) {
  Scripted server;
  server.say("POST /api/v1/namespaces/a/pods?fieldValidation=Ignore", 201, "{}");
  server.say("POST /api/v1/namespaces/first/pods?fieldValidation=Ignore", 201, "{}");
  server.say("POST /api/v1/namespaces/event/pods?fieldValidation=Ignore", 201, "{}");
  std::latch all_waiting(1), written(2);
  RemoteClient client(server.access(), {}, {.workers = {.threads = 1}});
  const auto create = [](const char* ns, bool synced) {
    return Write{.resource = kRemotePods, .ns = ns, .body = json::object{}, .synced = synced};
  };
  client.submit({create("first", true)}, [&](const auto&) { all_waiting.wait(); });
  client.submit({create("event", false)}, [&](const auto&) { written.count_down(); });
  client.submit({create("a", true)}, [&](const auto&) { written.count_down(); });
  all_waiting.count_down();
  written.wait();
  // The one that kept the worker busy may have been taken first or not yet; the event is last.
  ASSERT_EQ(server.asked().size(), 3U);
  EXPECT_EQ(server.asked().back(), "POST /api/v1/namespaces/event/pods?fieldValidation=Ignore");
}

// The answer to one submitted write.
Result<json::value> submitted(Scripted& server, const Write& write) {
  Loop loop;
  RemoteClient client(server.access(), loop.post());
  Result<json::value> out = fail(Code::kInternal, "no answer");
  client.submit({write}, [&](auto all) { out = std::move(all.at(0)); });
  EXPECT_TRUE(loop.run_one());
  return out;
}

TEST(RemoteClient, APatchThatOnlyAsksWhetherAnObjectIsUnchangedIsARead) {
  struct Case {
    std::string_view name, uid, revision;
    std::optional<Code> error;
  };
  const Case cases[] = {
      {"it is", "u", "7", {}},
      {"changed", "u", "8", Code::kConflict},
      {"another of that name", "v", "7", Code::kConflict},
  };
  const Write write{.verb = Verb::kMergePatch,
                    .resource = kRemotePods,
                    .ns = "a",
                    .name = "p",
                    .body = json::object{},
                    .uid = "u",
                    .resource_version = "7"};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Scripted server;
    server.say("GET /api/v1/namespaces/a/pods/p", 200,
               json::serialize(
                   json::object{{"metadata", {{"uid", c.uid}, {"resourceVersion", c.revision}}}}));
    const auto answer = submitted(server, write);
    EXPECT_EQ(answer ? std::nullopt : std::optional(answer.error().code), c.error);
    EXPECT_EQ(server.asked().size(), 1U);
  }
  Scripted empty;
  EXPECT_EQ(submitted(empty, write).error().code, Code::kNotFound);
}

TEST(RemoteClient, ASubmittedPatchWithAFailedPreconditionIsAConflict) {
  Scripted server;
  server.say("PATCH /api/v1/namespaces/a/pods/p?fieldValidation=Ignore", 422,
             R"({"kind":"Status","code":422,"reason":"Invalid","message":"m"})");
  server.say("GET /api/v1/namespaces/a/pods/p", 200, R"({"metadata":{"uid":"v"}})");
  const auto answer = submitted(server, {.verb = Verb::kMergePatch,
                                         .resource = kRemotePods,
                                         .ns = "a",
                                         .name = "p",
                                         .body = json::object{{"x", 1}},
                                         .uid = "u"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kConflict);
  EXPECT_EQ(answer.error().message, "m");
}

TEST(RemoteClient, TheAnswerToASubmitIsReadWithoutManagers) {
  Scripted server;
  server.say("POST /api/v1/namespaces/a/pods?fieldValidation=Ignore", 201,
             R"({"metadata":{"resourceVersion":"9","managedFields":[{}]}})");
  const auto answer =
      submitted(server, {.resource = kRemotePods, .ns = "a", .body = json::object{}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(json::serialize(*answer), R"({"metadata":{"resourceVersion":"9"}})");
}

TEST(RemoteClient, RefusesMoreSubmitsThanItCanHold) {
  Scripted server;
  server.say("POST /api/v1/namespaces/a/pods?fieldValidation=Ignore", 201, "{}");
  Loop loop;
  RemoteClient client(server.access(), loop.post(), {.workers = {.tasks_max = 0}});
  std::vector<Result<json::value>> results;
  client.submit({{.resource = kRemotePods, .ns = "a"}},
                [&](auto all) { results = std::move(all); });
  ASSERT_TRUE(loop.run_one());
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().code, Code::kTooManyRequests);
}

TEST(RemoteClient, WhatItHasReadIsSafeAlready) {
  Scripted server;
  Loop loop;
  RemoteClient client(server.access(), loop.post());
  bool called = false;
  client.when_safe([&] { called = true; });
  EXPECT_FALSE(called);
  loop.run_one();
  EXPECT_TRUE(called);
}

// Polls until there are that many events or an error.
Result<std::vector<Event>> collect(Watch& watch, std::size_t count) {
  std::vector<Event> all;
  while (all.size() < count) {
    SKIFF_ASSIGN(const auto more, watch.poll());
    all.insert(all.end(), more.begin(), more.end());
    if (more.empty()) std::this_thread::sleep_for(1ms);
  }
  return all;
}

TEST(RemoteClient, WatchesWhatTheServerSends) {
  Scripted server;
  server.stream("GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=7",
                {"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n{\"type\":\"MODI",
                 "FIED\",\"object\":{\"a\":2}}\n", "{\"type\":\"BOOKMARK\",\"object\":{}}\n", "\n",
                 "{\"type\":\"DELETED\",\"object\":{\"a\":3}}\n",
                 "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
                 "\"Expired\"}}\n"});
  RemoteClient client(server.access(), {}, {.watch_events = 1});
  std::atomic<int> calls = 0;
  auto watch = client.watch(kRemotePods, 7, [&] { ++calls; });
  ASSERT_TRUE(watch) << watch.error().message;
  const auto events = collect(**watch, 3);
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ((*events)[0].type, EventType::kAdded);
  EXPECT_EQ((*events)[1].type, EventType::kModified);
  EXPECT_EQ(json::get_int(*(*events)[1].object, {"a"}), 2);
  EXPECT_EQ((*events)[2].type, EventType::kDeleted);
  const auto end = collect(**watch, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kExpired);
  watch->reset();  // a poll may have been quicker than the call that asks for it
  EXPECT_EQ(calls, 4);
}

TEST(RemoteClient, AWatchThatTheServerRefusesOrBreaksIsAnError) {
  Scripted server;
  server.say("GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=1", 410,
             R"({"kind":"Status","code":410,"reason":"Expired"})");
  server.stream("GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=2", {});
  RemoteClient client(server.access(), {}, {.watch_patience = 50ms});
  EXPECT_EQ(client.watch(kRemotePods, 1, [] {}).error().code, Code::kExpired);
  const auto watch = client.watch(kRemotePods, 2, [] {});
  ASSERT_TRUE(watch);
  server.stop();
  const auto end = collect(**watch, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kServiceUnavailable);
}

TEST(RemoteClient, WatchesEndWhenDroppedBeforeOrAfterTheClient) {
  Scripted server;
  server.stream("GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=2",
                {"{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADDED\",\"object\":{}}\n"});
  std::unique_ptr<Watch> survivor;
  {
    RemoteClient client(server.access(), {}, {.watch_events = 1});
    // The reader of this one waits for room in its queue, the other's for the server.
    ASSERT_TRUE(client.watch(kRemotePods, 2, [] {}));
    survivor = *client.watch(kRemotePods, 2, [] {});
    EXPECT_TRUE(collect(*survivor, 2));
  }
  EXPECT_FALSE(collect(*survivor, 1));
}

TEST(RemoteClient, DiscoversKindsFromOldAndNewServers) {
  Scripted server;
  server.say("GET /api", 200, R"({"kind":"APIVersions","versions":["v1"]})");
  server.say("GET /api/v1", 200, R"({"groupVersion":"v1","resources":[
    {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod"}]})");
  server.say("GET /apis", 200, R"({"kind":"APIGroupDiscoveryList","items":[
    {"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[
    {"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster"}]}]}]})");
  RemoteClient client(server.access(), {});
  const auto kinds = client.discover();
  ASSERT_TRUE(kinds) << kinds.error().message;
  ASSERT_EQ(kinds->size(), 2U);
  EXPECT_EQ((*kinds)[0].resource.key(), "pods");
  EXPECT_EQ((*kinds)[1].resource.key(), "things.g");
}

constexpr const char* kFrom = "GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=";

std::string event_at(int revision) {
  return R"({"type":"ADDED","object":{"metadata":{"resourceVersion":")" + std::to_string(revision) +
         "\"}}}\n";
}

TEST(RemoteClient, AWatchGoesOnWhereItStoodWhenTheServerEndsIt) {
  Scripted server;
  server.stream(std::string(kFrom) + "7",
                {event_at(8),
                 R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"30"}}})"
                 "\n",
                 "END"});
  server.stream(std::string(kFrom) + "30", {event_at(31), "END"});
  server.stream(std::string(kFrom) + "31", {event_at(32)});
  RemoteClient client(server.access(), {});
  const auto watch = client.watch(kRemotePods, 7, [] {});
  ASSERT_TRUE(watch) << watch.error().message;
  const auto events = collect(**watch, 3);
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(api::revision(*(*events)[2].object), 32U);
}

TEST(RemoteClient, AWatchSurvivesARestartOfTheServer) {
  Scripted server;
  server.stream(std::string(kFrom) + "7", {event_at(8)});
  server.stream(std::string(kFrom) + "8", {event_at(9)});
  RemoteClient client(server.access(), {});
  const auto watch = client.watch(kRemotePods, 7, [] {});
  ASSERT_TRUE(watch) << watch.error().message;
  ASSERT_TRUE(collect(**watch, 1));
  server.restart();
  const auto events = collect(**watch, 1);
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(api::revision(*(*events)[0].object), 9U);
}

TEST(RemoteClient, AWatchThatCannotGoOnFromThereIsExpired) {
  Scripted server;
  server.stream(std::string(kFrom) + "7", {event_at(8), "END"});
  server.say(std::string(kFrom) + "8", 410, R"({"kind":"Status","code":410,"reason":"Expired"})");
  RemoteClient client(server.access(), {});
  const auto watch = client.watch(kRemotePods, 7, [] {});
  ASSERT_TRUE(watch);
  ASSERT_TRUE(collect(**watch, 1));
  const auto end = collect(**watch, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kExpired);
}

TEST(RemoteClient, AWatchWaitsForAServerThatIsBusy) {
  Scripted server;
  server.stream(std::string(kFrom) + "7", {event_at(8), "END"});
  server.say(std::string(kFrom) + "8", 503, R"({"kind":"Status","code":503})");
  RemoteClient client(server.access(), {});
  const auto watch = client.watch(kRemotePods, 7, [] {});
  ASSERT_TRUE(watch);
  ASSERT_TRUE(collect(**watch, 1));
  while (server.asked().size() < 3) std::this_thread::sleep_for(1ms);
  server.stream(std::string(kFrom) + "8", {event_at(9)});
  EXPECT_TRUE(collect(**watch, 1));
}

TEST(WatchLine, SaysWhereTheWatchMayGoOn) {
  const auto line =
      parse_watch_line(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}})");
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->event);
  EXPECT_EQ(line->revision, 12U);
}

TEST(WatchLine, IsReadWithoutManagers) {
  const auto line = parse_watch_line(
      R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"3","managedFields":[{}]}}})");
  ASSERT_TRUE(line && line->event);
  EXPECT_EQ(json::serialize(*line->event->object), R"({"metadata":{"resourceVersion":"3"}})");
  EXPECT_EQ(line->revision, 3U);
}

TEST(WatchLine, IsRefusedWhereItIsNoEvent) {
  for (const std::string_view line : {"", "{", "[]", R"({"type":"ADDED"})"}) {
    EXPECT_FALSE(parse_watch_line(line)) << line;
  }
  EXPECT_FALSE(parse_watch_line(R"({"type":"NEWER","object":{}})")->event);
}

}  // namespace
}  // namespace skiff::client
