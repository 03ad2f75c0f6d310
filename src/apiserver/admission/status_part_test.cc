#include <gtest/gtest.h>

#include "api/kinds.h"
#include "apiserver/test_world.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

const char* const kOldObject = R"({"metadata":{"name":"x","uid":"u","labels":{"a":"b"},
    "ownerReferences":[{"uid":"o"}]},"spec":{"n":1},"status":{"s":1}})";
const char* const kSent = R"({"metadata":{"name":"x","uid":"v","labels":{"a":"c"},
    "annotations":{"n":"t"}},"spec":{"n":2},"status":{"s":2}})";

std::string written(std::string_view key) {
  const KindTable kinds(api::builtin_kinds());
  const ServedKind* kind = kinds.by_key(key);
  EXPECT_NE(kind, nullptr) << key;
  return json::serialize(with_status(*kind, *json::parse(kOldObject), *json::parse(kSent)));
}

TEST(Status, OfKubernetesOwnKindsComesWithNotesInMetadata) {
  EXPECT_EQ(written("namespaces"),
            R"({"metadata":{"name":"x","uid":"u","labels":{"a":"c"},"annotations":{"n":"t"}},)"
            R"("spec":{"n":1},"status":{"s":2}})");
}

TEST(Status, OfSomeKindsLeavesWhatTheyAreFoundBy) {
  EXPECT_TRUE(written("deployments.apps").contains(R"("labels":{"a":"b"})"));
  EXPECT_TRUE(written("deployments.apps").contains(R"("annotations":{"n":"t"})"));
  EXPECT_TRUE(written("pods").contains(R"("ownerReferences":[{"uid":"o"}])"));
}

TEST(Status, OfOtherKindsIsTheStatusAlone) {
  for (const char* key : {"volumeattachments.storage.k8s.io", "apiservices.apiregistration.k8s.io",
                          "customresourcedefinitions.apiextensions.k8s.io"}) {
    json::value expected = *json::parse(kOldObject);
    expected.at("status").as_object()["s"] = 2;
    EXPECT_EQ(written(key), json::serialize(expected)) << key;
  }
}

// Like Kubernetes' own spec about the status of a namespace.
TEST(Status, OfANamespaceIsPatchedWithAnAnnotation) {
  World world;
  const auto [code, ns] = world.call("PATCH", "/api/v1/namespaces/default/status",
                                     R"({"metadata":{"annotations":{"note":"yes"}},
                     "status":{"conditions":[{"type":"T","status":"True","reason":"R"}]}})",
                                     "application/merge-patch+json");
  ASSERT_EQ(code, 200);
  EXPECT_EQ(json::get_string(ns, {"metadata", "annotations", "note"}), "yes");
  EXPECT_EQ(json::get_array(ns, {"status", "conditions"}).size(), 1u);
}

}  // namespace
}  // namespace skiff::apiserver
