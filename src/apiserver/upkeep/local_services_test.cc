#include "apiserver/upkeep/local_services.h"

#include <gtest/gtest.h>

#include <set>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kPath = "/apis/apiregistration.k8s.io/v1/apiservices";

std::string path(std::string_view name = "") {
  return std::string(kPath) + (name.empty() ? "" : "/") + std::string(name);
}

std::set<std::string> service_names(World& world) {
  std::set<std::string> out;
  const auto [status, list] = world.call("GET", path());
  EXPECT_EQ(status, 200);
  for (const json::value& item : json::get_array(list, {"items"})) {
    out.emplace(api::name(item));
  }
  return out;
}

TEST(LocalServices, TellOfEveryGroupAndVersionFromTheStart) {
  World world;
  const std::set<std::string> have = service_names(world);
  for (const char* name : {"v1.", "v1.apps", "v2.autoscaling", "v1.rbac.authorization.k8s.io"}) {
    EXPECT_TRUE(have.contains(name)) << name;
  }
  EXPECT_FALSE(have.contains("v1.apiregistration.k8s.io"));
  const auto [status, core] = world.call("GET", path("v1."));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(json::get_int(core, {"spec", "groupPriorityMinimum"}), 18000);
  EXPECT_EQ(json::get_int(core, {"spec", "versionPriority"}), 1);
  EXPECT_EQ(
      json::get_string(core, {"metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"}),
      "onstart");
  EXPECT_TRUE(api::condition_true(core, "Available"));
  const auto [_, second] = world.call("GET", path("v2.autoscaling"));
  EXPECT_EQ(json::get_int(second, {"spec", "versionPriority"}), 30);
}

TEST(LocalServices, ComeAndGoWithDefinitions) {
  World world;
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  ASSERT_EQ(world.call("POST", definitions, std::string(kBoats)).first, 201);
  world.collect();
  const auto [status, boats] = world.call("GET", path("v1.sea.example.org"));
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::get_int(boats, {"spec", "groupPriorityMinimum"}), 1000);
  EXPECT_EQ(json::get_int(boats, {"spec", "versionPriority"}), 100);
  EXPECT_EQ(
      json::get_string(boats, {"metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"}),
      "true");
  ASSERT_EQ(world.call("DELETE", definitions + "/boats.sea.example.org").first, 200);
  world.collect();
  EXPECT_EQ(world.call("GET", path("v1.sea.example.org")).first, 404);
}

TEST(LocalServices, ComeBackAndLeaveOthersAlone) {
  World world;
  ASSERT_EQ(world.call("DELETE", path("v1.apps")).first, 200);
  const std::string far =
      R"({"metadata":{"name":"v1.metrics.k8s.io"},"spec":{"group":"metrics.k8s.io","version":"v1",
      "groupPriorityMinimum":100,"versionPriority":100,
      "service":{"namespace":"kube-system","name":"metrics"}}})";
  const auto [status, made] = world.call("POST", path(), far);
  ASSERT_EQ(status, 201) << json::serialize(made);
  EXPECT_FALSE(api::condition_true(made, "Available"));
  world.collect();
  const std::set<std::string> have = service_names(world);
  EXPECT_TRUE(have.contains("v1.apps"));
  EXPECT_TRUE(have.contains("v1.metrics.k8s.io"));
  // All is as it should be: nothing more to do.
  EXPECT_FALSE(world.server->collect_garbage());
}

TEST(LocalServices, ArePlannedFromTheKindsAndWhatThereIs) {
  const KindTable kinds(api::builtin_kinds());
  LocalServicesPlan plan = plan_local_services(kinds, {});
  EXPECT_GT(plan.create.size(), 15u);
  EXPECT_TRUE(plan.remove.empty());
  std::vector<store::EntryPtr> existing;
  const auto add = [&](const std::string& text) {
    const std::string name(api::name(*json::parse(text)));
    existing.push_back(std::make_shared<const store::Entry>(
        store::Key{.resource = std::string(kApiServicesKey), .name = name}, 1, text));
  };
  for (const json::value& service : plan.create) add(json::serialize(service));
  add(R"({"metadata":{"name":"v1.gone.example.org",
      "labels":{"kube-aggregator.kubernetes.io/automanaged":"true"}}})");
  add(R"({"metadata":{"name":"v1.mine.example.org"}})");
  plan = plan_local_services(kinds, existing);
  EXPECT_TRUE(plan.create.empty());
  EXPECT_EQ(plan.remove, std::vector<std::string>{"v1.gone.example.org"});
}

}  // namespace
}  // namespace skiff::apiserver
