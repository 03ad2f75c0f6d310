#include "apiserver/upkeep/cold_storage.h"

#include <fmt/format.h>

#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kBoatsPath = "/apis/sea.example.org/v1/namespaces/default/boats";

void add_job(World& world, std::string_view plural, int from, int until) {
  for (int i = from; i < until; ++i) {
    const std::string name = fmt::format("n{}", i);
    if (plural == "pods") {
      ASSERT_EQ(world.call("POST", World::pods(), world.pod(name)).first, 201);
    } else {
      ASSERT_EQ(world
                    .call("POST", std::string(kBoatsPath),
                          fmt::format(R"({{"apiVersion":"sea.example.org/v1","kind":"Boat",)"
                                      R"("metadata":{{"name":"{}"}},"spec":{{"crew":3}}}})",
                                      name))
                    .first,
                201);
    }
  }
}

std::size_t packed(const World& world, std::string_view resource) {
  std::size_t count = 0;
  for (const store::EntryPtr& entry : world.store->list(resource).entries) {
    count += entry->packed() ? 1 : 0;
  }
  return count;
}

void wait_and_tick(World& world) {
  world.clock.advance(ColdStorage::kCold);
  world.server->tick();
}

std::string read_body(World& world, const std::string& path) {
  http::Response response = world.server->handle(world.request("GET", path));
  std::string body = response.body;
  for (bool more = response.stream != nullptr; more;) {
    std::string piece;
    more = response.stream->pull(piece, [] {});
    body += piece;
  }
  return body;
}

TEST(ColdStorage, PacksWhatHasNotChangedForAWhile) {
  World world;
  world.server->tick();
  add_job(world, "pods", 0, 50);
  world.server->tick();
  EXPECT_EQ(packed(world, "pods"), 0U);
  wait_and_tick(world);
  EXPECT_EQ(packed(world, "pods"), 0U) << "nobody has seen them grow old yet";
  add_job(world, "pods", 50, 60);
  wait_and_tick(world);
  EXPECT_EQ(packed(world, "pods"), 50U);
  wait_and_tick(world);
  EXPECT_EQ(packed(world, "pods"), 60U);
}

TEST(ColdStorage, AnswersAreAsBefore) {
  World world;
  ASSERT_EQ(world
                .call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      std::string(kBoats))
                .first,
            201);
  add_job(world, "pods", 0, 250);
  add_job(world, "boats", 0, 250);
  const std::vector<std::string> paths = {
      World::pods(),
      World::pods("/n7"),
      World::pods("?fieldSelector=metadata.name=n7"),
      std::string(kBoatsPath),
      std::string(kBoatsPath) + "/n7",
      std::string(kBoatsPath) + "?limit=3",
  };
  std::vector<std::string> answers;
  for (const std::string& path : paths) answers.push_back(read_body(world, path));
  ASSERT_EQ(packed(world, "pods"), 0U);
  for (int i = 0; i < 3; ++i) wait_and_tick(world);
  ASSERT_EQ(packed(world, "pods"), 250U);
  ASSERT_EQ(packed(world, "boats.sea.example.org"), 250U);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_GT(answers[i].size(), 300U) << paths[i];
    EXPECT_EQ(read_body(world, paths[i]), answers[i]) << paths[i];
  }
}

}  // namespace
}  // namespace skiff::apiserver
