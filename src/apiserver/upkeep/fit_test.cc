#include "apiserver/upkeep/fit.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/test_world.h"
#include "schema/openapi.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kFitDefinitionsPath =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr std::string_view kShips = "/apis/sea.example.org/v1/namespaces/default/ships";

// Two versions: v1 is kept and strict, v1beta1 takes anything.
constexpr std::string_view kShipsDefinition = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"ships.sea.example.org"},
  "spec":{"group":"sea.example.org","scope":"Namespaced",
    "names":{"plural":"ships","kind":"Ship"},
    "versions":[
      {"name":"v1","served":true,"storage":true,"subresources":{"status":{},
        "scale":{"specReplicasPath":".spec.crew","statusReplicasPath":".status.aboard",
                 "labelSelectorPath":".status.selector"}},
       "schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
        "spec":{"type":"object","required":["crew"],"properties":{
          "crew":{"type":"integer","minimum":1},"flag":{"type":"string"},
          "size":{"x-kubernetes-int-or-string":true},
          "when":{"type":"string","format":"date-time"}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}},
      {"name":"v1beta1","served":true,"storage":false,
       "schema":{"openAPIV3Schema":{"type":"object",
         "x-kubernetes-preserve-unknown-fields":true}}}]}})";

struct Sea : World {
  Sea() {
    EXPECT_EQ(call("POST", std::string(kFitDefinitionsPath), std::string(kShipsDefinition)).first,
              201);
  }
};

std::string ship(std::string_view name, std::string_view spec) {
  return R"({"apiVersion":"sea.example.org/v1","kind":"Ship","metadata":{"name":")" +
         std::string(name) + R"("},"spec":)" + std::string(spec) + "}";
}

schema::Schema read_schema(const char* text) {
  auto schema = schema::from_openapi(*json::parse(text));
  EXPECT_TRUE(schema);
  return schema ? *schema : schema::Schema();
}

TEST(Fit, FieldsGoNullsGoAndDefaultsCome) {
  const schema::Schema schema = read_schema(
      R"({"type":"object","properties":{"a":{"type":"string","default":"A"},"b":{"type":"string"},
          "n":{"type":"string","nullable":true},"d":{"type":"string","default":"D"}}})");
  json::value object =
      *json::parse(R"({"metadata":{"name":"x","labels":{"l":"m"}},"b":null,"n":null,"d":null,
                       "old":1})");
  EXPECT_FALSE(fits_custom(schema, object));
  fit_custom(schema, object);
  EXPECT_EQ(object, *json::parse(R"({"metadata":{"name":"x","labels":{"l":"m"}},"n":null,"d":"D",
                                     "a":"A"})"));
  EXPECT_TRUE(fits_custom(schema, object));
}

// Like Kubernetes' own spec about defaults from storage.
TEST(Fit, AnOldObjectIsReadWithTheDefaultsOfToday) {
  Sea world;
  ASSERT_EQ(world.call("POST", std::string(kShips), ship("argo", R"({"crew":3})")).first, 201);
  const std::string one = std::string(kShips) + "/argo";
  const std::string patch =
      R"([{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/)"
      R"(flag/default","value":"red"}])";
  ASSERT_EQ(world
                .call("PATCH", std::string(kFitDefinitionsPath) + "/ships.sea.example.org", patch,
                      "application/json-patch+json")
                .first,
            200);
  const auto [status, shown] = world.call("GET", one);
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::get_string(shown, {"spec", "flag"}), "red");
  const auto [_, list] = world.call("GET", std::string(kShips));
  EXPECT_EQ(json::get_string(json::get_array(list, {"items"})[0], {"spec", "flag"}), "red");
  // A list of custom objects says where it goes on even where it does not.
  EXPECT_NE(json::find(list, {"metadata", "continue"}), nullptr);
}

TEST(Fit, WhatTheKeptVersionHasNoPlaceForIsNotKept) {
  Sea world;
  ASSERT_EQ(world.call("POST", std::string(kShips), ship("argo", R"({"crew":3})")).first, 201);
  const auto [status, patched] =
      world.call("PATCH", "/apis/sea.example.org/v1beta1/namespaces/default/ships/argo",
                 R"({"spec":{"extra":1}})", "application/merge-patch+json");
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::find(patched, {"spec", "extra"}), nullptr);
  // And nobody counts any more who owns what.
  EXPECT_EQ(json::find(patched, {"metadata", "managedFields"}), nullptr);
}

std::vector<std::string> told_causes(const json::value& status) {
  std::vector<std::string> out;
  for (const json::value& cause : json::get_array(status, {"details", "causes"})) {
    out.push_back(std::string(json::get_string(cause, {"reason"})) + " " +
                  std::string(json::get_string(cause, {"field"})) + ": " +
                  std::string(json::get_string(cause, {"message"})));
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(CustomObjects, AreToldEverythingThatIsWrongAtOnce) {
  Sea world;
  const auto post = [&](std::string_view spec) {
    const auto [status, body] = world.call("POST", std::string(kShips), ship("Argo", spec));
    EXPECT_EQ(status, 422) << json::serialize(body);
    Lines lines = told_causes(body);
    EXPECT_FALSE(lines.empty());
    EXPECT_TRUE(lines[0].starts_with("FieldValueInvalid metadata.name: ")) << lines[0];
    lines.erase(lines.begin());
    return lines;
  };
  EXPECT_EQ(
      post(R"({"crew":"3"})"),
      (Lines{R"(FieldValueTypeInvalid spec.crew: Invalid value: "string": spec.crew in body )"
             R"(must be of type integer: "string")",
             "FieldValueInvalid .spec.crew: Invalid value: 0: .spec.crew accessor error: 3 is "
             "of the type string, expected int64"}));
  EXPECT_EQ(post(R"({"crew":-8})"),
            (Lines{"FieldValueInvalid spec.crew: Invalid value: -8: spec.crew in body should be "
                   "greater than or equal to 1",
                   "FieldValueInvalid .spec.crew: Invalid value: -8: should be a non-negative "
                   "integer"}));
  EXPECT_EQ(post(R"({"crew":1,"size":1.5,"when":"yesterday"})"),
            (Lines{R"(FieldValueTypeInvalid spec.size: Invalid value: "number": spec.size in body )"
                   R"(must be of type integer,string: "number")",
                   R"(FieldValueTypeInvalid spec.when: Invalid value: "yesterday": spec.when in )"
                   R"(body must be of type date-time: "yesterday")"}));
  EXPECT_EQ(post(R"({"crew":null})"), Lines{"FieldValueRequired spec.crew: Required value"});
  EXPECT_EQ(post("5").back(),
            "FieldValueInvalid .spec.crew: Invalid value: 0: .spec accessor error: 5 is of the "
            "type int64, expected map[string]interface{}");
}

TEST(CustomObjects, UnknownFieldsAreToldEvenWhereTheRestIsRefused) {
  Sea world;
  const auto [status, body] = world.call("POST", std::string(kShips) + "?fieldValidation=Warn",
                                         ship("argo", R"({"crew":0,"anchor":1})"));
  EXPECT_EQ(status, 422);
  EXPECT_EQ(http::header(world.last.headers, "Warning"),
            R"(299 - "unknown field \"spec.anchor\"")");
}

TEST(Definitions, AreMarkedAndHeldOnceTheyAreDeleted) {
  Sea world;
  const std::string one = std::string(kFitDefinitionsPath) + "/ships.sea.example.org";
  ASSERT_EQ(world.call("POST", std::string(kShips), ship("argo", R"({"crew":3})")).first, 201);
  const auto [_, before] = world.call("GET", one);
  EXPECT_EQ(json::find(before, {"metadata", "finalizers"}), nullptr);
  const auto [refused, why] = world.call("DELETE", one, R"({"preconditions":{"uid":"somebody"}})");
  EXPECT_EQ(refused, 409);
  EXPECT_TRUE(json::get_string(why, {"message"}).contains("Precondition failed: UID in"))
      << json::serialize(why);
  const auto [status, gone] = world.call("DELETE", one);
  ASSERT_EQ(status, 200);
  EXPECT_EQ(json::serialize(*json::find(gone, {"metadata", "finalizers"})),
            R"(["customresourcecleanup.apiextensions.k8s.io"])");
  EXPECT_EQ(json::get_int(gone, {"metadata", "generation"}), 1);
  EXPECT_EQ(json::find(gone, {"metadata", "deletionGracePeriodSeconds"}), nullptr);
  EXPECT_TRUE(api::condition_true(gone, "Terminating"));
  world.collect();
  EXPECT_EQ(world.call("GET", one).first, 404);
  EXPECT_TRUE(world.store->list("ships.sea.example.org").entries.empty());
}

}  // namespace
}  // namespace skiff::apiserver
