#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

class Emptying : public ::testing::Test {
 protected:
  Emptying() {
    EXPECT_EQ(world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"sea"}})").first,
              201);
  }
  void map(std::string name, std::string_view more = "") {
    EXPECT_EQ(world
                  .call("POST", "/api/v1/namespaces/sea/configmaps",
                        R"({"metadata":{"name":")" + name + "\"" + std::string(more) + "}}")
                  .first,
              201);
  }
  json::value sea() { return world.get("namespaces", "", "sea"); }
  std::string told(std::string_view type) {
    const json::value ns = sea();
    const json::object* condition = api::condition(ns, type);
    if (condition == nullptr) return "absent";
    const json::value value = *condition;
    return std::string(json::get_string(value, {"status"})) + " " +
           std::string(json::get_string(value, {"reason"})) + ": " +
           std::string(json::get_string(value, {"message"}));
  }
  AdmissionWorld world;
};

TEST_F(Emptying, A_namespace_says_what_keeps_it) {
  map("plain");
  map("kept", R"(,"finalizers":["sea.example.org/anchor"])");
  ASSERT_EQ(world.call("DELETE", "/api/v1/namespaces/sea").first, 200);
  world.collect();
  EXPECT_EQ(told("NamespaceDeletionDiscoveryFailure"),
            "False ResourcesDiscovered: All resources successfully discovered");
  EXPECT_EQ(told("NamespaceDeletionGroupVersionParsingFailure"),
            "False ParsedGroupVersions: All legacy kube types successfully parsed");
  EXPECT_EQ(told("NamespaceDeletionContentFailure"),
            "False ContentDeleted: All content successfully deleted, may be waiting on "
            "finalization");
  EXPECT_EQ(told("NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource "
            "instances");
  EXPECT_EQ(told("NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "sea.example.org/anchor in 1 resource instances");
  EXPECT_EQ(json::get_string(sea(), {"status", "phase"}), "Terminating");
  const json::value managed = json::get_array(sea(), {"metadata", "managedFields"}).front();
  EXPECT_EQ(json::get_string(managed, {"manager"}), "skiff");
  EXPECT_EQ(json::get_string(managed, {"subresource"}), "status");
  EXPECT_TRUE(json::serialize(managed).contains(R"(k:{\"type\":\"NamespaceContentRemaining\"})"))
      << json::serialize(managed);
  ASSERT_EQ(world
                .call("PATCH", "/api/v1/namespaces/sea/configmaps/kept",
                      R"({"metadata":{"finalizers":null}})", "application/merge-patch+json")
                .first,
            200);
  world.collect();
  EXPECT_TRUE(sea().is_null());
}

TEST_F(Emptying, An_empty_namespace_goes_at_once) {
  ASSERT_EQ(world.call("DELETE", "/api/v1/namespaces/sea").first, 200);
  world.collect();
  EXPECT_TRUE(sea().is_null());
}

TEST_F(Emptying, Nothing_is_looked_at_again_while_one_object_after_another_goes) {
  for (int i = 0; i < 50; ++i) {
    map("m" + std::to_string(i), R"(,"finalizers":["sea.example.org/anchor"])");
  }
  ASSERT_EQ(world.call("DELETE", "/api/v1/namespaces/sea").first, 200);
  world.collect();
  const store::Revision before = world.store->revision();
  EXPECT_FALSE(world.server->collect_garbage());  // it waits, and does not write
  EXPECT_EQ(world.store->revision(), before);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(world
                  .call("PATCH", "/api/v1/namespaces/sea/configmaps/m" + std::to_string(i),
                        R"({"metadata":{"finalizers":null}})", "application/merge-patch+json")
                  .first,
              200);
  }
  world.collect();
  EXPECT_TRUE(sea().is_null());
}

TEST_F(Emptying, A_definition_waits_for_the_last_of_its_objects) {
  ASSERT_EQ(world
                .call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      std::string(kBoats))
                .first,
            201);
  ASSERT_EQ(world
                .call("POST", "/apis/sea.example.org/v1/namespaces/sea/boats",
                      R"({"apiVersion":"sea.example.org/v1","kind":"Boat","metadata":{"name":"b",
                          "finalizers":["sea.example.org/anchor"]},"spec":{"crew":2}})")
                .first,
            201);
  const std::string path =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.sea.example.org";
  ASSERT_EQ(world.call("DELETE", path).first, 200);
  world.collect();
  EXPECT_TRUE(api::deleting(world.get("boats.sea.example.org", "sea", "b")));
  EXPECT_EQ(world.call("GET", path).first, 200);
  ASSERT_EQ(world
                .call("PATCH", "/apis/sea.example.org/v1/namespaces/sea/boats/b",
                      R"({"metadata":{"finalizers":null}})", "application/merge-patch+json")
                .first,
            200);
  world.collect();
  EXPECT_EQ(world.call("GET", path).first, 404);
}

class DeletedStorage : public ::testing::Test {
 protected:
  void put(std::string resource, std::string ns, std::string_view finalizer,
           std::string_view phase) {
    world.put(std::move(resource), std::move(ns), "data",
              R"({"metadata":{"uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z",
                  "finalizers":[")" +
                  std::string(finalizer) + R"("]},"status":{"phase":")" + std::string(phase) +
                  R"("}})");
  }
  AdmissionWorld world;
};

TEST_F(DeletedStorage, A_claim_stays_until_the_pods_that_use_it_have_gone) {
  ASSERT_EQ(world
                .run("p", std::string(kOneContainer) +
                              R"(,"nodeName":"n","volumes":[{"name":"v",
                                 "persistentVolumeClaim":{"claimName":"data"}}])")
                .first,
            201);
  put("persistentvolumeclaims", "default", "kubernetes.io/pvc-protection", "Bound");
  world.collect();
  EXPECT_FALSE(world.get("persistentvolumeclaims", "default", "data").is_null());
  ASSERT_EQ(world.call("DELETE", World::pods("/p?gracePeriodSeconds=0")).first, 200);
  world.collect();
  const json::value left = world.get("persistentvolumeclaims", "default", "data");
  EXPECT_TRUE(json::get_array(left, {"metadata", "finalizers"}).empty());
}

TEST_F(DeletedStorage, A_volume_stays_while_it_is_bound) {
  put("persistentvolumes", "", "kubernetes.io/pv-protection", "Bound");
  world.collect();
  EXPECT_FALSE(world.get("persistentvolumes", "", "data").is_null());
  put("persistentvolumes", "", "kubernetes.io/pv-protection", "Released");
  world.collect();
  const json::value left = world.get("persistentvolumes", "", "data");
  EXPECT_TRUE(json::get_array(left, {"metadata", "finalizers"}).empty());
}

}  // namespace
}  // namespace skiff::apiserver
