#include "apiserver/admission/rules.h"
#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kStorageClassKey = "storageclasses.storage.k8s.io";

// The rules themselves, on a claim.
class Claims : public ::testing::Test {
 protected:
  json::value filled(std::string_view text) {
    json::value claim = text_to_json(text);
    Transaction txn(*world.store);
    const AdmissionRequest request{.txn = txn, .request = write, .object = claim};
    choose_storage_class(request);
    protect_storage(request);
    return claim;
  }
  std::string resize(std::string_view from, std::string_view to) {
    const json::value old = text_to_json(from);
    json::value next = text_to_json(to);
    Transaction txn(*world.store);
    const auto done =
        check_claim_resize({.txn = txn, .request = write, .object = next, .old = &old});
    return done ? "" : done.error().message;
  }
  AdmissionWorld world;
  ServedKind kind{
      .kind = {.resource = {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true}},
      .storage_version = "v1"};
  WriteRequest write{.kind = &kind, .ns = "default", .name = "claim"};
};

TEST_F(Claims, A_claim_without_a_class_gets_the_newest_default_one) {
  const auto made = [](std::string_view when, std::string_view is_default) {
    return R"({"metadata":{"creationTimestamp":")" + std::string(when) +
           R"(","annotations":{"storageclass.kubernetes.io/is-default-class":")" +
           std::string(is_default) + R"("}}})";
  };
  EXPECT_EQ(json::find(filled("{}"), {"spec", "storageClassName"}), nullptr);
  world.put(std::string(kStorageClassKey), "", "old", made("2026-01-01T00:00:00Z", "true"));
  world.put(std::string(kStorageClassKey), "", "new", made("2026-02-01T00:00:00Z", "true"));
  world.put(std::string(kStorageClassKey), "", "newest", made("2026-03-01T00:00:00Z", "false"));
  EXPECT_EQ(json::get_string(filled("{}"), {"spec", "storageClassName"}), "new");
  EXPECT_EQ(json::get_string(filled(R"({"spec":{"storageClassName":""}})"),
                             {"spec", "storageClassName"}, "absent"),
            "");
  EXPECT_EQ(json::get_string(filled(R"({"spec":{"storageClassName":"mine"}})"),
                             {"spec", "storageClassName"}),
            "mine");
}

TEST_F(Claims, A_claim_is_held_while_pods_use_it) {
  EXPECT_EQ(json::strings(json::get_array(filled(R"({"metadata":{"finalizers":["a/b"]}})"),
                                          {"metadata", "finalizers"})),
            (std::vector<std::string>{"a/b", "kubernetes.io/pvc-protection"}));
}

TEST_F(Claims, Only_a_bound_claim_of_a_class_that_expands_may_grow) {
  const auto claim = [](std::string_view size, std::string_view phase, std::string_view name) {
    return R"({"metadata":{"name":"claim"},"spec":{"storageClassName":")" + std::string(name) +
           R"(","resources":{"requests":{"storage":")" + std::string(size) +
           R"("}}},"status":{"phase":")" + std::string(phase) + R"("}})";
  };
  world.put(std::string(kStorageClassKey), "", "elastic", R"({"allowVolumeExpansion":true})");
  world.put(std::string(kStorageClassKey), "", "stiff", "{}");
  EXPECT_EQ(resize(claim("1Gi", "Bound", "elastic"), claim("2Gi", "Bound", "elastic")), "");
  EXPECT_EQ(resize(claim("2Gi", "Pending", "stiff"), claim("1Gi", "Pending", "stiff")), "");
  EXPECT_EQ(resize(claim("1Gi", "Pending", "elastic"), claim("2Gi", "Pending", "elastic")),
            "persistentvolumeclaims \"claim\" is forbidden: Only bound persistent volume claims "
            "can be expanded");
  constexpr std::string_view kStiff =
      "persistentvolumeclaims \"claim\" is forbidden: only dynamically provisioned pvc can be "
      "resized and the storageclass that provisions the pvc must support resize";
  EXPECT_EQ(resize(claim("1Gi", "Bound", "stiff"), claim("2Gi", "Bound", "stiff")), kStiff);
  EXPECT_EQ(resize(claim("1Gi", "Bound", ""), claim("2Gi", "Bound", "")), kStiff);
}

}  // namespace
}  // namespace skiff::apiserver
