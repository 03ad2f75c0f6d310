// Lists, pages, tables and watches.
#include "apiserver/reads.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kTableOrJson =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,"
    "application/json";

std::vector<std::string> listed_names(const json::value& list) {
  std::vector<std::string> out;
  for (const json::value& item : json::get_array(list, {"items"})) {
    out.emplace_back(api::name(item));
  }
  return out;
}

void add_pods(World& world, int count) {
  for (int i = 0; i < count; ++i) {
    world.call("POST", World::pods(),
               world.pod(fmt::format("p{}", i), fmt::format(R"(,"labels":{{"odd":"{}"}})", i % 2)));
  }
}

// What has arrived on a watch, as "TYPE name" words; errors and bookmarks as their type alone.
std::vector<std::string> drain(World& world, http::Stream& stream, bool* ended = nullptr) {
  world.flush();
  std::vector<std::string> out;
  while (true) {
    std::string bytes;
    const bool more = stream.pull(bytes, [] {});
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = bytes.find('\n', at);
      const json::value event = json::parse(bytes.substr(at, end - at)).value();
      out.push_back(std::string(json::get_string(event, {"type"})) + " " +
                    std::string(json::get_string(event, {"object", "metadata", "name"})));
      at = end + 1;
    }
    if (ended != nullptr) *ended = !more;
    if (!more || bytes.empty()) return out;
  }
}

using Words = std::vector<std::string>;

TEST(List, OfManyObjectsIsWrittenWhileItIsRead) {
  World world;
  add_pods(world, 250);
  world.call("GET", World::pods("?limit=10"));
  EXPECT_EQ(world.last.stream, nullptr) << "a short list goes out in one piece";
  const json::value whole = world.call("GET", World::pods("?pretty=true")).second;
  ASSERT_EQ(listed_names(whole).size(), 250U);

  const http::Response response = world.server->handle(world.request("GET", World::pods()));
  ASSERT_NE(response.stream, nullptr);
  std::string body;
  int pieces = 0;
  for (bool more = true; more; ++pieces) {
    std::string piece;
    more = response.stream->pull(piece, [] {});
    ASSERT_FALSE(piece.empty());
    body += piece;
  }
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(json::parse(body).value(), whole);
}

TEST(List, SelectsByLabelAndField) {
  World world;
  add_pods(world, 4);
  EXPECT_EQ(listed_names(world.call("GET", World::pods("?labelSelector=odd%3D1")).second),
            (Words{"p1", "p3"}));
  EXPECT_EQ(listed_names(world
                             .call("GET", World::pods("?fieldSelector=metadata.name%3Dp2&limit=500&"
                                                      "resourceVersion=0"))
                             .second),
            (Words{"p2"}));
  EXPECT_EQ(
      listed_names(world.call("GET", "/api/v1/pods?fieldSelector=status.phase!%3DPending").second),
      Words{});
  EXPECT_EQ(world.call("GET", World::pods("?fieldSelector=spec.x%3Dy")).first, 400);
}

TEST(List, PagesOneSnapshot) {
  World world;
  add_pods(world, 5);
  auto [status, page] = world.call("GET", World::pods("?limit=2"));
  EXPECT_EQ(listed_names(page), (Words{"p0", "p1"}));
  EXPECT_EQ(json::get_int(page, {"metadata", "remainingItemCount"}), 3);
  const std::string first(api::resource_version(page));
  // What happens between pages is not seen by them.
  world.call("DELETE", World::pods("/p2"));
  world.call("POST", World::pods(), world.pod("p10"));
  world.call("PATCH", World::pods("/p3"), R"({"metadata":{"labels":{"odd":"no"}}})",
             "application/merge-patch+json");
  const auto next = [&] {
    return World::pods("?limit=2&continue=" +
                       http::escape(json::get_string(page, {"metadata", "continue"})));
  };
  std::tie(status, page) = world.call("GET", next());
  EXPECT_EQ(listed_names(page), (Words{"p2", "p3"})) << world.last.body;
  EXPECT_EQ(api::label(json::get_array(page, {"items"})[1], "odd"), "1");
  EXPECT_EQ(api::resource_version(page), first);
  std::tie(status, page) = world.call("GET", next());
  EXPECT_EQ(listed_names(page), (Words{"p4"}));
  EXPECT_EQ(json::find(page, {"metadata", "continue"}), nullptr);
  EXPECT_EQ(world.call("GET", World::pods("?continue=nonsense")).first, 400);
}

TEST(List, KnowsResourceVersions) {
  World world;
  add_pods(world, 1);
  const store::Revision then = world.store->revision();
  add_pods(world, 2);
  EXPECT_EQ(
      listed_names(world
                       .call("GET", World::pods(fmt::format(
                                        "?resourceVersion={}&resourceVersionMatch=Exact", then)))
                       .second),
      (Words{"p0"}));
  const auto [status, answer] = world.call("GET", World::pods("?resourceVersion=99999"));
  EXPECT_EQ(status, 504);
  EXPECT_NE(json::get_string(answer, {"message"}).find("Too large resource version"),
            std::string_view::npos);
  EXPECT_EQ(world.call("GET", World::pods("?resourceVersionMatch=Exact")).first, 422);
}

TEST(List, GoesOnWhereTheSnapshotIsGone) {
  World world;
  add_pods(world, 4);
  const json::value page = world.call("GET", World::pods("?limit=2")).second;
  const std::string token(json::get_string(page, {"metadata", "continue"}));
  // A restart forgets history, so the snapshot of the first page is gone.
  world.call("DELETE", World::pods("/p2"));
  world.restart();
  auto [status, answer] = world.call("GET", World::pods("?limit=2&continue=" + token));
  ASSERT_EQ(status, 410) << world.last.body;
  EXPECT_EQ(json::get_string(answer, {"reason"}), "Expired");
  EXPECT_TRUE(json::get_string(answer, {"message"})
                  .starts_with("The provided continue parameter is too old to display a consistent "
                               "list result. You can start a new list without"));
  const std::string next(json::get_string(answer, {"metadata", "continue"}));
  ASSERT_FALSE(next.empty());
  std::tie(status, answer) = world.call("GET", World::pods("?limit=2&continue=" + next));
  EXPECT_EQ(listed_names(answer), (Words{"p3"}));
  std::tie(status, answer) =
      world.call("GET", World::pods("?resourceVersion=2&resourceVersionMatch=Exact"));
  EXPECT_EQ(status, 410);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            "The resourceVersion for the provided list is too old.");
}

TEST(List, ShowsWhatIsOnDiskWhereTheDiskIsBehind) {
  World world;
  add_pods(world, 2);
  const store::Revision visible = world.store->visible();
  world.server->handle(world.request("POST", World::pods(), world.pod("late")));
  world.server->handle(world.request("DELETE", World::pods("/p0")));
  ASSERT_GT(world.store->revision(), visible);
  http::Response response = world.server->handle(world.request("GET", World::pods()));
  EXPECT_EQ(response.after_revision, 0u);
  const json::value list = json::parse(response.body).value();
  EXPECT_EQ(listed_names(list), (Words{"p0", "p1"}));
  EXPECT_EQ(api::resource_version(list), std::to_string(visible));

  response = world.server->handle(world.request("GET", World::pods("?watch=1")));
  EXPECT_EQ(response.after_revision, 0u);
  std::string bytes;
  response.stream->pull(bytes, [] {});
  EXPECT_NE(bytes.find("\"name\":\"p0\""), std::string::npos);
  EXPECT_EQ(bytes.find("\"name\":\"late\""), std::string::npos);
  EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED late", "DELETED p0"}));

  // Who has heard of a newer revision waits for it.
  world.server->handle(world.request("POST", World::pods(), world.pod("later")));
  const store::Revision newest = world.store->revision();
  response = world.server->handle(
      world.request("GET", World::pods(fmt::format("?resourceVersion={}", newest))));
  EXPECT_EQ(response.after_revision, newest);
}

TEST(Get, DoesNotTellOfARemovalBeforeItIsOnDisk) {
  World world;
  add_pods(world, 1);
  EXPECT_EQ(world.server->handle(world.request("GET", World::pods("/none"))).status, 404);
  world.server->handle(world.request("DELETE", World::pods("/p0")));
  http::Response response = world.server->handle(world.request("GET", World::pods("/p0")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.after_revision, 0u);
  response = world.server->handle(world.request("GET", World::pods("/none")));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.after_revision, 0u);
  world.flush();
  EXPECT_EQ(world.server->handle(world.request("GET", World::pods("/p0"))).status, 404);
}

TEST(List, IsATableForKubectl) {
  World world;
  add_pods(world, 1);
  world.clock.advance(std::chrono::seconds(90));
  const auto [status, table] =
      world.call("GET", World::pods("?limit=500"), "", "", std::string(kTableOrJson));
  EXPECT_EQ(api::kind(table), "Table");
  EXPECT_EQ(api::api_version(table), "meta.k8s.io/v1");
  const json::array& columns = json::get_array(table, {"columnDefinitions"});
  ASSERT_EQ(columns.size(), 9u);
  EXPECT_EQ(json::get_string(columns[0], {"name"}), "Name");
  const json::value row = json::get_array(table, {"rows"})[0];
  const json::array& cells = json::get_array(row, {"cells"});
  ASSERT_EQ(cells.size(), 9u);
  EXPECT_EQ(cells[0], "p0");
  EXPECT_EQ(cells[1], "0/1");
  EXPECT_EQ(cells[2], "Pending");
  EXPECT_EQ(cells[4], "90s");
  EXPECT_EQ(json::get_string(row, {"object", "kind"}), "PartialObjectMetadata");
}

TEST(List, CanBeMetadataOnly) {
  World world;
  add_pods(world, 1);
  const auto [status, list] = world.call(
      "GET", World::pods(), "", "",
      "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
  EXPECT_EQ(api::kind(list), "PartialObjectMetadataList");
  EXPECT_EQ(json::find(json::get_array(list, {"items"})[0], {"spec"}), nullptr);
}

TEST(Watch, TellsChangesAfterARevision) {
  World world;
  add_pods(world, 1);
  const http::Response response = world.server->handle(world.request(
      "GET", World::pods(fmt::format("?watch=true&resourceVersion={}", world.store->revision()))));
  ASSERT_NE(response.stream, nullptr) << response.body;
  EXPECT_EQ(drain(world, *response.stream), Words{});
  world.call("POST", World::pods(), world.pod("x"));
  world.call("PATCH", World::pods("/x"), R"({"metadata":{"labels":{"a":"b"}}})",
             "application/merge-patch+json");
  world.call("DELETE", World::pods("/x"));
  EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED x", "MODIFIED x", "DELETED x"}));
}

TEST(Watch, WakesOnceWhenSomethingIsVisible) {
  World world;
  const http::Response response =
      world.server->handle(world.request("GET", World::pods("?watch=1")));
  int woken = 0;
  std::string bytes;
  EXPECT_TRUE(response.stream->pull(bytes, [&] { ++woken; }));
  world.server->handle(world.request("POST", World::pods(), world.pod("x")));
  EXPECT_EQ(woken, 0) << "not on disk yet";
  world.flush();
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(response.stream->pull(bytes, [] {}));
  EXPECT_NE(bytes.find("ADDED"), std::string::npos);
}

TEST(Watch, BeginsWithTheStateWhereNoRevisionIsGiven) {
  World world;
  add_pods(world, 2);
  const http::Response response =
      world.server->handle(world.request("GET", World::pods("?watch=1")));
  EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED p0", "ADDED p1"}));
}

TEST(Watch, OfANameIsOfOneObject) {
  World world;
  add_pods(world, 2);
  const http::Response response =
      world.server->handle(world.request("GET", "/api/v1/watch/namespaces/default/pods/p1"));
  ASSERT_NE(response.stream, nullptr) << response.body;
  world.call("POST", World::pods(), world.pod("x"));
  world.call("DELETE", World::pods("/p1"));
  EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED p1", "DELETED p1"}));
}

TEST(Watch, TurnsTheEndOfAMatchIntoADeletion) {
  World world;
  const http::Response response =
      world.server->handle(world.request("GET", World::pods("?watch=1&labelSelector=a%3Db")));
  world.call("POST", World::pods(), world.pod("x"));
  EXPECT_EQ(drain(world, *response.stream), Words{});
  const auto label = [&](std::string_view value) {
    world.call("PATCH", World::pods("/x"),
               fmt::format(R"({{"metadata":{{"labels":{{"a":"{}"}}}}}})", value),
               "application/merge-patch+json");
  };
  label("b");
  EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED x"}));
  label("c");
  EXPECT_EQ(drain(world, *response.stream), (Words{"DELETED x"}));
}

TEST(Watch, RemembersWhatMatchedBefore) {
  World world;
  world.call("POST", World::pods(), world.pod("x", R"(,"labels":{"a":"b"})"));
  const http::Response response = world.server->handle(world.request(
      "GET", World::pods(fmt::format("?watch=1&labelSelector=a%3Db&resourceVersion={}",
                                     world.store->revision()))));
  const auto annotate = [&](int i) {
    world.call("PATCH", World::pods("/x"),
               fmt::format(R"({{"metadata":{{"annotations":{{"i":"{}"}}}}}})", i),
               "application/merge-patch+json");
  };
  annotate(1);
  annotate(2);
  EXPECT_EQ(drain(world, *response.stream), (Words{"MODIFIED x", "MODIFIED x"}));
  world.call("DELETE", World::pods("/x"));
  world.call("POST", World::pods(), world.pod("x"));
  world.call("DELETE", World::pods("/x"));
  world.call("POST", World::pods(), world.pod("x", R"(,"labels":{"a":"b"})"));
  EXPECT_EQ(drain(world, *response.stream), (Words{"DELETED x", "ADDED x"}));
}

TEST(Watch, TellsInTheStreamThatHistoryIsGone) {
  World world;
  add_pods(world, 2);
  world.restart();
  const http::Response response =
      world.server->handle(world.request("GET", World::pods("?watch=1&resourceVersion=2")));
  EXPECT_EQ(response.status, 200);
  ASSERT_NE(response.stream, nullptr) << response.body;
  std::string bytes;
  EXPECT_FALSE(response.stream->pull(bytes, [] {}));
  EXPECT_TRUE(bytes.starts_with(R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1")"));
  EXPECT_NE(bytes.find(R"("reason":"Expired")"), std::string::npos) << bytes;
  EXPECT_NE(bytes.find("too old resource version: 2 ("), std::string::npos) << bytes;
}

TEST(Watch, OfTheFutureIsSilentUntilItComes) {
  World world;
  const store::Revision future = world.store->revision() + 2;
  const http::Response response = world.server->handle(
      world.request("GET", World::pods(fmt::format("?watch=1&resourceVersion={}", future))));
  ASSERT_EQ(response.status, 200);
  add_pods(world, 4);
  const Words seen = drain(world, *response.stream);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), "ADDED p3");
  EXPECT_LT(seen.size(), 4u) << "what came before the revision asked for is not told";
}

TEST(Watch, HasTheOldPathsToo) {
  World world;
  add_pods(world, 1);
  for (const char* path : {"/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods",
                           "/api/v1/watch/namespaces/default/pods/p0"}) {
    SCOPED_TRACE(path);
    const http::Response response = world.server->handle(world.request("GET", path));
    ASSERT_NE(response.stream, nullptr) << response.body;
    EXPECT_EQ(drain(world, *response.stream), (Words{"ADDED p0"}));
  }
  const http::Response one =
      world.server->handle(world.request("GET", "/api/v1/watch/namespaces/default"));
  ASSERT_NE(one.stream, nullptr) << one.body;
  EXPECT_EQ(drain(world, *one.stream), (Words{"ADDED default"}));
  // A name is read, whatever the query says.
  EXPECT_EQ(api::name(world.call("GET", World::pods("/p0?watch=1")).second), "p0");
}

TEST(Watch, SendsInitialEventsAndTheirEnd) {
  World world;
  add_pods(world, 1);
  const http::Response response = world.server->handle(
      world.request("GET", World::pods("?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                                       "resourceVersionMatch=NotOlderThan")));
  ASSERT_NE(response.stream, nullptr) << response.body;
  std::string bytes;
  response.stream->pull(bytes, [] {});
  EXPECT_NE(bytes.find("k8s.io/initial-events-end"), std::string::npos);
  EXPECT_EQ(world.call("GET", World::pods("?watch=1&sendInitialEvents=true")).first, 422);
}

TEST(Watch, SendsBookmarksAndEndsInTime) {
  World world;
  const http::Response response = world.server->handle(
      world.request("GET", World::pods("?watch=1&allowWatchBookmarks=true&timeoutSeconds=100")));
  EXPECT_EQ(drain(world, *response.stream), (Words{"BOOKMARK "})) << "the end of the beginning";
  int woken = 0;
  std::string bytes;
  EXPECT_TRUE(response.stream->pull(bytes, [&] { ++woken; }));
  world.clock.advance(std::chrono::seconds(61));
  world.server->tick();
  EXPECT_EQ(woken, 1);
  bool ended = false;
  EXPECT_EQ(drain(world, *response.stream, &ended), (Words{"BOOKMARK "}));
  EXPECT_FALSE(ended);
  world.clock.advance(std::chrono::seconds(40));
  world.server->tick();
  drain(world, *response.stream, &ended);
  EXPECT_TRUE(ended);
}

TEST(Watch, SendsTablesWithColumnsOnce) {
  World world;
  add_pods(world, 2);
  const http::Response response = world.server->handle(
      world.request("GET", World::pods("?watch=true"), "", "", std::string(kTableOrJson)));
  std::string bytes;
  response.stream->pull(bytes, [] {});
  const std::size_t end = bytes.find('\n');
  const json::value first = json::parse(bytes.substr(0, end)).value();
  const json::value second = json::parse(bytes.substr(end + 1, bytes.size() - end - 2)).value();
  EXPECT_EQ(json::get_array(first, {"object", "columnDefinitions"}).size(), 9u);
  EXPECT_EQ(json::get_array(second, {"object", "columnDefinitions"}).size(), 0u);
}

}  // namespace
}  // namespace skiff::apiserver
