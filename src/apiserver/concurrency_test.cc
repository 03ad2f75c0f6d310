// Many threads on one server: no write is lost, none is made of two.
#include <fmt/format.h>

#include <thread>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

TEST(Concurrency, PatchesOfOneObjectAllArrive) {
  World world;
  const std::string map = "/api/v1/namespaces/default/configmaps";
  world.call("POST", map, R"({"metadata":{"name":"a"}})");
  constexpr int kThreads = 4, kEach = 50;
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const auto response = world.server->handle(world.request(
              "PATCH", map + "/a", fmt::format(R"({{"data":{{"k{}-{}":"v"}}}})", t, i),
              "application/merge-patch+json"));
          // A writer that is always overtaken may give up, but must say so.
          if (response.status == 409) --i;
          if (response.status != 200 && response.status != 409) ++failed;
        }
      });
    }
  }
  EXPECT_EQ(failed, 0);
  const json::value object = world.call("GET", map + "/a").second;
  EXPECT_EQ(json::get_object(object, {"data"}).size(), static_cast<std::size_t>(kThreads * kEach));
}

TEST(Concurrency, OneCreatorOfANameWins) {
  World world;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> created = 0, refused = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          const auto response = world.server->handle(
              world.request("POST", World::pods(), world.pod(fmt::format("p{}", round))));
          (response.status == 201 ? created : refused)++;
        });
      }
    }
    EXPECT_EQ(created, 1);
    EXPECT_EQ(refused, 3);
  }
}

}  // namespace
}  // namespace skiff::apiserver
