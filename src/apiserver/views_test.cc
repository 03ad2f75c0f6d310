// One store, two views: what is written through one API group is read through the other.
#include <gtest/gtest.h>

#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kOldEventsPath = "/api/v1/namespaces/default/events";
constexpr std::string_view kNew = "/apis/events.k8s.io/v1/namespaces/default/events";

std::string new_event(std::string_view name) {
  return R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":")" +
         std::string(name) + R"("},"eventTime":"2023-11-14T22:17:20.000000Z","note":"hello",
         "type":"Normal","action":"Go","reason":"Went","reportingController":"a.org/c",
         "reportingInstance":"c-1","regarding":{"kind":"Pod","name":"p","namespace":"default"}})";
}

class Views : public ::testing::Test {
 protected:
  World world;
  std::string old_path(std::string_view rest = "") {
    return std::string(kOldEventsPath) + std::string(rest);
  }
  std::string new_path(std::string_view rest = "") { return std::string(kNew) + std::string(rest); }
};

TEST_F(Views, AnEventWrittenThroughOneGroupIsReadThroughTheOther) {
  const auto [code, made] = world.call("POST", new_path(), new_event("e"));
  ASSERT_EQ(code, 201) << json::serialize(made);
  EXPECT_EQ(json::get_string(made, {"apiVersion"}), "events.k8s.io/v1");
  EXPECT_EQ(json::get_string(made, {"note"}), "hello");
  EXPECT_EQ(json::find(made, {"message"}), nullptr);
  const json::value seen = world.call("GET", old_path("/e")).second;
  EXPECT_EQ(json::get_string(seen, {"apiVersion"}), "v1");
  EXPECT_EQ(json::get_string(seen, {"message"}), "hello");
  EXPECT_EQ(json::get_string(seen, {"involvedObject", "name"}), "p");
  EXPECT_EQ(json::get_string(seen, {"reportingComponent"}), "a.org/c");
  EXPECT_EQ(world.call("POST", old_path(), R"({"metadata":{"name":"e"}})").first, 409);
}

TEST_F(Views, ListsSelectByTheFieldsOfTheirOwnView) {
  ASSERT_EQ(world.call("POST", new_path(), new_event("e")).first, 201);
  const auto count = [&](const std::string& path) {
    const auto [code, list] = world.call("GET", path);
    return code == 200 ? static_cast<int>(json::get_array(list, {"items"}).size()) : -code;
  };
  EXPECT_EQ(count(new_path("?fieldSelector=regarding.name=p")), 1);
  EXPECT_EQ(count(new_path("?fieldSelector=regarding.name=q")), 0);
  EXPECT_EQ(count(old_path("?fieldSelector=involvedObject.name=p")), 1);
  EXPECT_EQ(count(new_path("?fieldSelector=involvedObject.name=p")), -400);
  // The controller stands in for a source that is not told.
  EXPECT_EQ(count(old_path("?fieldSelector=source=a.org/c")), 1);
}

TEST_F(Views, PatchesAndWatchesSpeakTheLanguageOfTheirView) {
  ASSERT_EQ(world
                .call("POST", old_path(),
                      R"({"metadata":{"name":"e"},"message":"a","count":1,
                           "involvedObject":{"namespace":"default"}})")
                .first,
            201);
  const auto [code, patched] =
      world.call("PATCH", new_path("/e"), R"({"metadata":{"labels":{"a":"b"}}})",
                 "application/merge-patch+json");
  ASSERT_EQ(code, 200) << json::serialize(patched);
  EXPECT_EQ(json::get_int(patched, {"deprecatedCount"}), 1);
  EXPECT_EQ(json::get_string(patched, {"note"}), "a");
  const json::value list = world.call("GET", new_path()).second;
  EXPECT_EQ(json::get_string(list, {"apiVersion"}), "events.k8s.io/v1");
  EXPECT_EQ(json::get_string(json::get_array(list, {"items"}).at(0), {"note"}), "a");
  http::Response watch = world.server->handle(world.request("GET", new_path("?watch=1")));
  std::string line;
  ASSERT_TRUE(watch.stream->pull(line, [] {}));
  EXPECT_NE(line.find(R"("note":"a")"), std::string::npos) << line;
  EXPECT_EQ(line.find(R"("message")"), std::string::npos) << line;
}

TEST_F(Views, EachViewHasItsOwnRules) {
  const auto [code, answer] = world.call(
      "POST", new_path(), R"({"metadata":{"name":"e"},"regarding":{"namespace":"default"}})");
  EXPECT_EQ(code, 422);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            R"(Event "e" is invalid: [eventTime: Required value, type: Invalid )"
            R"(value: "": has invalid value: ])");
  ASSERT_EQ(world.call("POST", new_path(), new_event("f")).first, 201);
  std::string other = new_event("f");
  other.replace(other.find("hello"), 5, "salut");
  const auto [second, refused] = world.call("PUT", new_path("/f"), other);
  EXPECT_EQ(second, 422);
  EXPECT_EQ(json::get_string(refused, {"message"}),
            R"(Event "f" is invalid: message: Invalid value: "salut": field is )"
            "immutable");
}

TEST_F(Views, TheTableIsTheSame) {
  ASSERT_EQ(world.call("POST", new_path(), new_event("e")).first, 201);
  const std::string table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const json::value a = world.call("GET", old_path("/e"), "", "", table).second;
  const json::value b = world.call("GET", new_path("/e"), "", "", table).second;
  const auto cells = [](const json::value& t) {
    return json::get_array(json::get_array(t, {"rows"}).at(0), {"cells"});
  };
  EXPECT_EQ(cells(a), cells(b));
  EXPECT_EQ(cells(a).at(3), "pod/p");
}

}  // namespace
}  // namespace skiff::apiserver
