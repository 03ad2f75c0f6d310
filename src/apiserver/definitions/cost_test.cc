// What a change of one CustomResourceDefinition costs beside many others: counted, not timed.
#include <fmt/format.h>

#include <thread>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kCostPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr int kOthers = 20;

std::string some_definition(std::string_view plural, std::string_view kind,
                            std::string_view group) {
  return fmt::format(
      R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{)"
      R"("name":"{0}.{2}"}},"spec":{{"group":"{2}","scope":"Namespaced","names":{{"plural":"{0}",)"
      R"("kind":"{1}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{)"
      R"("openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object",)"
      R"("properties":{{"size":{{"type":"integer"}}}}}}}}}}}}}}]}}}})",
      plural, kind, group);
}

// As many others as the tests need, two in each group.
class DefinitionCost : public ::testing::Test {
 protected:
  DefinitionCost() {
    for (int i = 0; i < kOthers; ++i) {
      create(fmt::format("boats{}", i), fmt::format("Boat{}", i), fmt::format("g{}.org", i / 2));
    }
    world.collect();
  }

  void create(std::string_view plural, std::string_view kind, std::string_view group) {
    const auto [code, made] =
        world.call("POST", std::string(kCostPath), some_definition(plural, kind, group));
    ASSERT_EQ(code, 201) << json::serialize(made);
  }
  void label(std::string_view name) {
    ASSERT_EQ(world
                  .call("PATCH", fmt::format("{}/{}", kCostPath, name),
                        R"({"metadata":{"labels":{"a":"b"}}})", "application/merge-patch+json")
                  .first,
              200);
  }
  void remove(std::string_view name) {
    ASSERT_EQ(world.call("DELETE", fmt::format("{}/{}", kCostPath, name)).first, 200);
    world.collect();
    ASSERT_EQ(world.call("GET", fmt::format("{}/{}", kCostPath, name)).first, 404);
  }
  template <class Do>
  std::uint64_t reads(Do act) {
    const std::uint64_t before = world.server->definitions_read();
    act();
    return world.server->definitions_read() - before;
  }
  template <class Do>
  std::uint64_t writes(Do act) {
    const std::uint64_t before = world.server->documents_written();
    act();
    return world.server->documents_written() - before;
  }
  std::string body(const std::string& path, const std::string& accept = "application/json") {
    return world.server->handle(world.request("GET", path, "", "", accept)).body;
  }
  // Whatever is told of all kinds together.
  std::vector<std::string> everything() {
    std::vector<std::string> out = {
        body("/openapi/v2"), body("/openapi/v2", std::string(kOpenApiV2Type)), body("/apis"),
        body("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
        body("/openapi/v3")};
    const json::value index = json::parse(out.back()).value();
    for (const auto& path : json::get_object(index, {"paths"})) {
      out.push_back(body("/openapi/v3/" + std::string(path.key())));
      out.push_back(body("/" + std::string(path.key())));
    }
    return out;
  }

  World world;
};

TEST_F(DefinitionCost, EachWasReadOnce) {
  EXPECT_EQ(world.server->definitions_read(), static_cast<std::uint64_t>(kOthers));
  world.restart();
  EXPECT_EQ(world.server->definitions_read(), static_cast<std::uint64_t>(kOthers));
}

TEST_F(DefinitionCost, ANewOneIsReadAlone) {
  EXPECT_EQ(reads([&] { create("ships", "Ship", "sea.org"); }), 1u);
  EXPECT_EQ(reads([&] { create("rafts", "Raft", "g0.org"); }), 1u);
  EXPECT_EQ(world.call("GET", "/apis/g0.org/v1/rafts").first, 200);
}

TEST_F(DefinitionCost, AChangedOneIsReadAlone) {
  EXPECT_EQ(reads([&] { label("boats3.g1.org"); }), 1u);
}

TEST_F(DefinitionCost, OneThatGoesIsReadOnceMoreWhenItIsMarked) {
  EXPECT_EQ(reads([&] { remove("boats3.g1.org"); }), 1u);
  EXPECT_EQ(world.call("GET", "/apis/g1.org/v1/boats3").first, 404);
  EXPECT_EQ(world.call("GET", "/apis/g1.org/v1/boats2").first, 200);
  // It comes back as another one.
  EXPECT_EQ(reads([&] { create("boats3", "Boat3", "g1.org"); }), 1u);
}

TEST_F(DefinitionCost, WhoOnlyReadsCostsNothing) {
  EXPECT_EQ(reads([&] {
              everything();
              world.call("GET", std::string(kCostPath));
              world.call("POST", "/api/v1/namespaces/default/configmaps",
                         R"({"metadata":{"name":"a"}})");
              world.collect();
            }),
            0u);
}

TEST_F(DefinitionCost, KindsOfOthersAreTheSameObjects) {
  const auto before = world.server->kinds();
  create("ships", "Ship", "sea.org");
  const auto after = world.server->kinds();
  EXPECT_NE(before, after);
  EXPECT_EQ(before->find("sea.org", "v1", "ships"), nullptr);
  EXPECT_NE(after->find("sea.org", "v1", "ships"), nullptr);
  EXPECT_EQ(before->find("g4.org", "v1", "boats9"), after->find("g4.org", "v1", "boats9"));
  EXPECT_EQ(before->find("", "v1", "pods"), after->find("", "v1", "pods"));
}

TEST_F(DefinitionCost, OnlyTheDocumentOfTheGroupThatChangedIsWrittenAgain) {
  everything();
  EXPECT_EQ(writes([&] { everything(); }), 0u);
  EXPECT_EQ(writes([&] { create("ships", "Ship", "sea.org"); }), 0u);
  EXPECT_EQ(writes([&] { body("/openapi/v3"); }), 1u);
  EXPECT_EQ(writes([&] { body("/openapi/v2"); }), 1u);
  label("boats3.g1.org");
  EXPECT_EQ(writes([&] { body("/openapi/v3"); }), 1u);
  remove("ships.sea.org");
  EXPECT_EQ(writes([&] { body("/openapi/v3"); }), 0u);
  remove("boats3.g1.org");
  EXPECT_EQ(writes([&] { body("/openapi/v3"); }), 1u);
}

TEST_F(DefinitionCost, OneDocumentIsWrittenForWhoAsksForOne) {
  EXPECT_EQ(writes([&] { body("/openapi/v3/apis/g1.org/v1"); }), 1u);
}

TEST_F(DefinitionCost, WhatIsToldIsWhatAFreshServerTells) {
  everything();
  create("ships", "Ship", "sea.org");
  create("rafts", "Raft", "g0.org");
  everything();
  label("boats3.g1.org");
  remove("boats7.g3.org");
  remove("ships.sea.org");
  const std::vector<std::string> kept = everything();
  world.restart();
  const std::vector<std::string> fresh = everything();
  ASSERT_EQ(kept.size(), fresh.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i], fresh[i]) << i;
    EXPECT_EQ(kept[i].find("Ship"), std::string::npos);
  }
}

TEST_F(DefinitionCost, ANameThatTwoWaitForGoesToOne) {
  create("ships", "Ship", "sea.org");
  create("brigs", "Ship", "sea.org");
  create("ketches", "Ship", "sea.org");
  remove("ships.sea.org");
  const auto brigs = world.call("GET", fmt::format("{}/brigs.sea.org", kCostPath)).second;
  const auto ketches = world.call("GET", fmt::format("{}/ketches.sea.org", kCostPath)).second;
  EXPECT_TRUE(api::condition_true(brigs, "NamesAccepted")) << json::serialize(brigs);
  EXPECT_FALSE(api::condition_true(ketches, "NamesAccepted")) << json::serialize(ketches);
  EXPECT_EQ(world.call("GET", "/apis/sea.org/v1/ketches").first, 404);
}

TEST_F(DefinitionCost, ManyAtTheSameTimeAreAllServed) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 5; ++i) {
          const std::string name = fmt::format("s{}x{}", t, i);
          const auto made = world.server->handle(world.request(
              "POST", std::string(kCostPath), some_definition(name, "S" + name, "sea.org")));
          EXPECT_EQ(made.status, 201) << made.body;
          body("/openapi/v3");
        }
      });
    }
  }
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 5; ++i) {
      const std::string path = fmt::format("/apis/sea.org/v1/s{}x{}", t, i);
      EXPECT_EQ(world.call("GET", path).first, 200) << path;
    }
  }
  EXPECT_NE(body("/openapi/v3/apis/sea.org/v1").find("Ss3x4"), std::string::npos);
}

}  // namespace
}  // namespace skiff::apiserver
