// What clients hear while the disk takes nothing: writes are refused, reads show what is safe.
#include <gtest/gtest.h>

#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

struct FullDisk : World {
  FullDisk() {
    EXPECT_EQ(call("POST", pods(), pod("safe")).first, 201);
    disk->fail("the disk that holds objects.db is full");
    // Nobody knows yet: these are in memory only.
    waiting = server->handle(request("POST", pods(), pod("unsafe")));
    EXPECT_EQ(waiting.status, 201);
    EXPECT_GT(waiting.after_revision, store->visible()) << "the answer waits";
    const auto patched =
        server->handle(request("PATCH", pods("/safe"), R"({"metadata":{"labels":{"a":"b"}}})",
                               "application/merge-patch+json"));
    EXPECT_EQ(patched.status, 200);
    EXPECT_FALSE(store->flush());
  }
  // An answer that leaves at once, although the disk is full.
  std::pair<int, json::value> now(std::string method, std::string target, std::string body = {}) {
    const auto answer = server->handle(request(std::move(method), std::move(target), body));
    EXPECT_LE(answer.after_revision, store->visible()) << "it would wait for the disk";
    auto parsed = json::parse(answer.body);
    EXPECT_TRUE(parsed) << answer.body;
    return {answer.status, parsed ? *parsed : json::value()};
  }

  http::Response waiting;
};

TEST(FullDisk, WritesAreRefusedWithASentence) {
  FullDisk world;
  for (const auto& [method, target, body] :
       {std::tuple{"POST", World::pods(), world.pod("new")},
        std::tuple{"DELETE", World::pods("/safe"), std::string()}}) {
    const auto [status, answer] = world.now(method, target, body);
    EXPECT_EQ(status, 503) << method;
    EXPECT_EQ(json::get_string(answer, {"reason"}), "ServiceUnavailable");
    const std::string_view message = json::get_string(answer, {"message"});
    EXPECT_TRUE(message.contains("objects.db is full")) << message;
    EXPECT_TRUE(message.contains("resumes by itself")) << message;
  }
}

TEST(FullDisk, ReadsShowWhatIsSafe) {
  FullDisk world;
  const auto [status, pod] = world.now("GET", World::pods("/safe"));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(json::find(pod, {"metadata", "labels"}), nullptr) << "the label may still be lost";
  EXPECT_EQ(world.now("GET", World::pods("/unsafe")).first, 404);
  const auto [listed, list] = world.now("GET", World::pods());
  EXPECT_EQ(listed, 200);
  EXPECT_EQ(json::get_array(list, {"items"}).size(), 1);
  EXPECT_EQ(world.now("GET", "/api/v1/namespaces/default").first, 200);

  world.disk->heal();
  world.flush();
  EXPECT_EQ(world.now("GET", World::pods("/unsafe")).first, 200);
  EXPECT_EQ(
      json::get_string(world.now("GET", World::pods("/safe")).second, {"metadata", "labels", "a"}),
      "b");
  EXPECT_EQ(world.now("GET", World::pods("/none")).first, 404);
  EXPECT_EQ(world.call("POST", World::pods(), world.pod("new")).first, 201);
}

}  // namespace
}  // namespace skiff::apiserver
