#include <gtest/gtest.h>

#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kDeployments = "/apis/apps/v1/namespaces/default/deployments";

std::string deployments(std::string_view rest = "") {
  return std::string(kDeployments) + std::string(rest);
}

std::string deployment() {
  return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{)"
         R"("replicas":2,"selector":{"matchLabels":{"b":"2","a":"1"}},"template":{"metadata":{)"
         R"("labels":{"a":"1","b":"2"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}})";
}

std::string scale(std::string_view spec, std::string_view metadata = "") {
  return R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web")" +
         std::string(metadata) + R"(},"spec":)" + std::string(spec) + "}";
}

TEST(Scale, ShowsReplicasAndSelector) {
  World w;
  ASSERT_EQ(w.call("POST", deployments(), deployment()).first, 201);
  const auto [code, shown] = w.call("GET", deployments("/web/scale"));
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::get_string(shown, {"kind"}), "Scale");
  EXPECT_EQ(json::get_string(shown, {"apiVersion"}), "autoscaling/v1");
  EXPECT_EQ(json::get_int(shown, {"spec", "replicas"}), 2);
  EXPECT_EQ(json::get_int(shown, {"status", "replicas"}), 0);
  EXPECT_EQ(json::get_string(shown, {"status", "selector"}), "a=1,b=2");
  EXPECT_EQ(w.call("GET", deployments("/none/scale")).first, 404);
  EXPECT_EQ(w.call("DELETE", deployments("/web/scale")).first, 405);
}

TEST(Scale, WritesTheObject) {
  World w;
  ASSERT_EQ(w.call("POST", deployments(), deployment()).first, 201);
  const auto [code, answer] = w.call("PUT", deployments("/web/scale"), scale(R"({"replicas":5})"));
  EXPECT_EQ(code, 200) << json::serialize(answer);
  EXPECT_EQ(json::get_int(answer, {"spec", "replicas"}), 5);
  const auto [read, object] = w.call("GET", deployments("/web"));
  EXPECT_EQ(json::get_int(object, {"spec", "replicas"}), 5);
  EXPECT_EQ(json::get_int(object, {"metadata", "generation"}), 2);
  EXPECT_EQ(json::get_string(answer, {"metadata", "resourceVersion"}),
            json::get_string(object, {"metadata", "resourceVersion"}));
  // Without a number it is none.
  EXPECT_EQ(w.call("PUT", deployments("/web/scale"), scale("{}")).first, 200);
  EXPECT_EQ(json::get_int(w.call("GET", deployments("/web")).second, {"spec", "replicas"}), 0);
}

TEST(Scale, CanBePatched) {
  World w;
  ASSERT_EQ(w.call("POST", deployments(), deployment()).first, 201);
  for (const std::string type :
       {"application/merge-patch+json", "application/strategic-merge-patch+json"}) {
    const auto [code, answer] =
        w.call("PATCH", deployments("/web/scale"), R"({"spec":{"replicas":7}})", type);
    EXPECT_EQ(code, 200) << json::serialize(answer);
    EXPECT_EQ(json::get_int(answer, {"spec", "replicas"}), 7);
  }
  const auto [code, answer] = w.call("PATCH", deployments("/web/scale"),
                                     R"([{"op":"replace","path":"/spec/replicas","value":3}])",
                                     "application/json-patch+json");
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::get_int(answer, {"spec", "replicas"}), 3);
}

TEST(Scale, RefusesWhatDoesNotFit) {
  World w;
  const auto created = w.call("POST", deployments(), deployment()).second;
  const auto [bad, answer] = w.call("PUT", deployments("/web/scale"), scale(R"({"replicas":-1})"));
  EXPECT_EQ(bad, 422);
  EXPECT_EQ(json::get_string(answer, {"message"}),
            "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be "
            "greater than or equal to 0");
  EXPECT_EQ(w.call("PUT", deployments("/web/scale"), scale(R"({"replicas":"x"})")).first, 400);
  EXPECT_EQ(w.call("PUT", deployments("/web/scale"), deployment()).first, 400);
  EXPECT_EQ(w.call("PUT", deployments("/web/scale"),
                   scale(R"({"replicas":1})", R"(,"resourceVersion":"1")"))
                .first,
            409);
  EXPECT_EQ(
      w.call("PUT", deployments("/web/scale"), scale(R"({"replicas":1})", R"(,"uid":"another")"))
          .first,
      409);
  EXPECT_EQ(w.call("PUT", deployments("/none/scale"),
                   R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"none"}})")
                .first,
            404);
  const auto after = w.call("GET", deployments("/web")).second;
  EXPECT_EQ(after, created);
}

TEST(Scale, DryRunChangesNothing) {
  World w;
  ASSERT_EQ(w.call("POST", deployments(), deployment()).first, 201);
  const auto [code, answer] =
      w.call("PUT", deployments("/web/scale?dryRun=All"), scale(R"({"replicas":9})"));
  EXPECT_EQ(code, 200);
  EXPECT_EQ(json::get_int(answer, {"spec", "replicas"}), 9);
  EXPECT_EQ(json::get_int(w.call("GET", deployments("/web")).second, {"spec", "replicas"}), 2);
}

constexpr std::string_view kFleets = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"fleets.sea.example.org"},
  "spec":{"group":"sea.example.org","scope":"Namespaced","names":{"plural":"fleets","kind":"Fleet"},
    "versions":[{"name":"v1","served":true,"storage":true,
      "subresources":{"status":{},"scale":{"specReplicasPath":".spec.ships.count",
        "statusReplicasPath":".status.count","labelSelectorPath":".status.selector"}},
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{"ships":{"type":"object","properties":{
          "count":{"type":"integer"}}}}},
        "status":{"type":"object","properties":{"count":{"type":"integer"},
          "selector":{"type":"string"}}}}}}}]}})";

TEST(Scale, OfCustomObjects) {
  World w;
  const std::string fleets = "/apis/sea.example.org/v1/namespaces/default/fleets";
  const auto fleet = [](std::string_view spec) {
    return R"({"apiVersion":"sea.example.org/v1","kind":"Fleet","metadata":{"name":"web"},"spec":)" +
           std::string(spec) + "}";
  };
  ASSERT_EQ(w.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                   std::string(kFleets))
                .first,
            201);
  ASSERT_EQ(w.call("POST", fleets, fleet("{}")).first, 201);
  const auto [none, said] = w.call("GET", fleets + "/web/scale");
  EXPECT_EQ(none, 500);
  EXPECT_EQ(
      json::get_string(said, {"message"}),
      "Internal error occurred: the spec replicas field \".spec.ships.count\" does not exist");
  const auto [code, answer] = w.call("PUT", fleets + "/web/scale", scale(R"({"replicas":4})"));
  EXPECT_EQ(code, 200) << json::serialize(answer);
  EXPECT_EQ(json::get_int(answer, {"spec", "replicas"}), 4);
  const auto object = w.call("GET", fleets + "/web").second;
  EXPECT_EQ(json::get_int(object, {"spec", "ships", "count"}), 4);
  ASSERT_EQ(w.call("PATCH", fleets + "/web/status", R"({"status":{"count":3,"selector":"a=b"}})",
                   "application/merge-patch+json")
                .first,
            200);
  const auto shown = w.call("GET", fleets + "/web/scale").second;
  EXPECT_EQ(json::get_int(shown, {"status", "replicas"}), 3);
  EXPECT_EQ(json::get_string(shown, {"status", "selector"}), "a=b");
  const auto [bad, why] = w.call("PUT", fleets + "/web/scale", scale(R"({"replicas":-1})"));
  EXPECT_EQ(bad, 422);
  EXPECT_EQ(json::get_string(why, {"message"}),
            "Fleet.sea.example.org \"web\" is invalid: .spec.ships.count: Invalid value: -1: "
            "should be a non-negative integer");
}

}  // namespace
}  // namespace skiff::apiserver
