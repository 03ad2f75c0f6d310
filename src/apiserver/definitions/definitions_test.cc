#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kDefinitionsPath =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

std::string definitions(std::string_view name = "") {
  return std::string(kDefinitionsPath) + (name.empty() ? "" : "/" + std::string(name));
}

std::string sea_definition(std::string_view plural, std::string_view kind,
                           std::string_view names = "",
                           std::string_view schema = R"({"type":"object"})") {
  return R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{)"
         R"("name":")" +
         std::string(plural) + R"(.sea.org"},"spec":{"group":"sea.org","scope":"Namespaced",)" +
         R"("names":{"plural":")" + std::string(plural) + R"(","kind":")" + std::string(kind) +
         "\"" + std::string(names) +
         R"(},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":)" +
         std::string(schema) + "}}]}}";
}

std::string_view reason(const json::value& object, std::string_view type) {
  const json::object* condition = api::condition(object, type);
  return condition == nullptr ? "" : json::view(condition->at("reason").as_string());
}

TEST(Definitions, AreEstablishedAtOnce) {
  World w;
  const auto [code, crd] = w.call("POST", definitions(), sea_definition("boats", "Boat"));
  ASSERT_EQ(code, 201) << json::serialize(crd);
  EXPECT_TRUE(api::condition_true(crd, "NamesAccepted"));
  EXPECT_TRUE(api::condition_true(crd, "Established"));
  EXPECT_EQ(reason(crd, "NamesAccepted"), "NoConflicts");
  EXPECT_EQ(reason(crd, "Established"), "InitialNamesAccepted");
  EXPECT_EQ(json::serialize(*json::find(crd, {"status", "storedVersions"})), R"(["v1"])");
  EXPECT_EQ(json::get_string(crd, {"status", "acceptedNames", "listKind"}), "BoatList");
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v1/boats").first, 200);
}

TEST(Definitions, ANameBelongsToTheFirst) {
  World w;
  ASSERT_EQ(w.call("POST", definitions(), sea_definition("boats", "Boat", R"(,"shortNames":["b"])"))
                .first,
            201);
  const auto [code, late] =
      w.call("POST", definitions(), sea_definition("dinghies", "Boat", R"(,"shortNames":["b"])"));
  ASSERT_EQ(code, 201) << json::serialize(late);
  EXPECT_FALSE(api::condition_true(late, "NamesAccepted"));
  EXPECT_EQ(reason(late, "NamesAccepted"), "ListKindConflict");
  EXPECT_FALSE(api::condition_true(late, "Established"));
  EXPECT_EQ(reason(late, "Established"), "NotAccepted");
  EXPECT_EQ(json::get_string(late, {"status", "acceptedNames", "plural"}), "dinghies");
  EXPECT_EQ(json::get_string(late, {"status", "acceptedNames", "kind"}), "");
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v1/dinghies").first, 404);
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v1/boats").first, 200);

  // When the first goes, the second has its turn.
  ASSERT_EQ(w.call("DELETE", definitions("boats.sea.org")).first, 200);
  w.collect();
  const auto now = w.call("GET", definitions("dinghies.sea.org")).second;
  EXPECT_TRUE(api::condition_true(now, "Established")) << json::serialize(now);
  EXPECT_EQ(json::get_string(now, {"status", "acceptedNames", "kind"}), "Boat");
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v1/dinghies").first, 200);
}

TEST(Definitions, RulesAreStoredWithAWarning) {
  World w;
  const auto [code, crd] =
      w.call("POST", definitions(),
             sea_definition(
                 "boats", "Boat", "",
                 R"({"type":"object","properties":{"spec":{"type":"object","properties":{"n":)"
                 R"({"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.n > 3"}]}}})"));
  ASSERT_EQ(code, 201) << json::serialize(crd);
  EXPECT_NE(json::serialize(crd).find("self.n > 3"), std::string::npos);
  EXPECT_NE(http::header(w.last.headers, "Warning").find("does not enforce"),
            std::string_view::npos);
}

TEST(Definitions, AVersionThatMayBeOnDiskStays) {
  World w;
  auto crd = w.call("POST", definitions(), sea_definition("boats", "Boat")).second;
  json::value second = json::get_array(crd, {"spec", "versions"})[0];
  json::set(second, {"name"}, "v2");
  json::set(second, {"storage"}, true);
  crd.as_object()["spec"].as_object()["versions"].as_array()[0].as_object()["storage"] = false;
  crd.as_object()["spec"].as_object()["versions"].as_array().push_back(second);
  auto [code, both] = w.call("PUT", definitions("boats.sea.org"), json::serialize(crd));
  ASSERT_EQ(code, 200) << json::serialize(both);
  EXPECT_EQ(json::serialize(*json::find(both, {"status", "storedVersions"})), R"(["v1","v2"])");
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v2/boats").first, 200);
  auto& versions = both.as_object()["spec"].as_object()["versions"].as_array();
  versions.erase(versions.begin());
  const auto [refused, why] = w.call("PUT", definitions("boats.sea.org"), json::serialize(both));
  EXPECT_EQ(refused, 422);
  EXPECT_NE(json::serialize(why).find("v1 was previously a storage version"), std::string::npos);
}

TEST(Definitions, SelectableFieldsSelect) {
  World w;
  const std::string text =
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{)"
      R"("name":"boats.sea.org"},"spec":{"group":"sea.org","scope":"Namespaced","names":{"plural":)"
      R"("boats","kind":"Boat"},"versions":[{"name":"v1","served":true,"storage":true,)"
      R"("selectableFields":[{"jsonPath":".spec.color"}],"schema":{"openAPIV3Schema":{"type":)"
      R"("object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"}}}}}}}]}})";
  ASSERT_EQ(w.call("POST", definitions(), text).first, 201);
  for (const std::string color : {"red", "blue"}) {
    ASSERT_EQ(w.call("POST", "/apis/sea.org/v1/namespaces/default/boats",
                     R"({"apiVersion":"sea.org/v1","kind":"Boat","metadata":{"name":")" + color +
                         R"("},"spec":{"color":")" + color + R"("}})")
                  .first,
              201);
  }
  const auto found = w.call("GET", "/apis/sea.org/v1/boats?fieldSelector=spec.color%3Dred").second;
  ASSERT_EQ(json::get_array(found, {"items"}).size(), 1u);
  EXPECT_EQ(api::name(json::get_array(found, {"items"})[0]), "red");
  EXPECT_EQ(w.call("GET", "/apis/sea.org/v1/boats?fieldSelector=spec.size%3D1").first, 400);
}

}  // namespace
}  // namespace skiff::apiserver
