#include "client/remote/discovery.h"

#include <gtest/gtest.h>

namespace skiff::client {
namespace {

TEST(Discovery, ReadsTheAggregatedForm) {
  const auto answer = json::parse(R"({"kind":"APIGroupDiscoveryList","items":[
    {"metadata":{"name":"kubeflow.org"},"versions":[
      {"version":"v1","resources":[
        {"resource":"tfjobs","responseKind":{"group":"","version":"","kind":"TFJob"},
         "scope":"Namespaced","singularResource":"tfjob","shortNames":["tf"],"categories":["all"],
         "verbs":["get","list"],
         "subresources":[{"subresource":"scale"},{"subresource":"status"}]},
        {"resource":"profiles","responseKind":{"kind":"Profile"},"scope":"Cluster"}]},
      {"version":"v1beta1"}]}]})");
  ASSERT_TRUE(is_aggregated(*answer));
  const auto kinds = kinds_of_aggregated(*answer);
  ASSERT_EQ(kinds.size(), 2U);
  const api::Resource expected{
      .group = "kubeflow.org", .version = "v1", .plural = "tfjobs", .kind = "TFJob"};
  EXPECT_EQ(kinds[0].kind.resource, expected);
  EXPECT_EQ(kinds[0].kind.singular, "tfjob");
  EXPECT_EQ(kinds[0].kind.short_names, std::vector<std::string>{"tf"});
  EXPECT_EQ(kinds[0].kind.categories, std::vector<std::string>{"all"});
  EXPECT_TRUE(kinds[0].kind.has_status);
  EXPECT_FALSE(kinds[1].kind.resource.namespaced);
  EXPECT_FALSE(kinds[1].kind.has_status);
  EXPECT_EQ(kinds[0].verbs, (std::vector<std::string>{"get", "list"}));
  EXPECT_EQ(kinds[0].subresources, (std::vector<std::string>{"scale", "status"}));
}

TEST(Discovery, ReadsTheOldForm) {
  EXPECT_EQ(version_paths(*json::parse(R"({"kind":"APIVersions","versions":["v1"]})")),
            std::vector<std::string>{"/api/v1"});
  const auto groups = json::parse(R"({"kind":"APIGroupList","groups":[{"name":"batch",
    "versions":[{"groupVersion":"batch/v1beta1"},{"groupVersion":"batch/v1"}],
    "preferredVersion":{"groupVersion":"batch/v1"}}]})");
  EXPECT_FALSE(is_aggregated(*groups));
  EXPECT_EQ(version_paths(*groups),
            (std::vector<std::string>{"/apis/batch/v1", "/apis/batch/v1beta1"}));
  const auto kinds = kinds_of_version(*json::parse(
      R"({"kind":"APIResourceList","groupVersion":"v1","resources":[
      {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","shortNames":["po"],
       "verbs":["create"]},
      {"name":"pods/log","namespaced":true,"kind":"Pod"},
      {"name":"pods/status","namespaced":true,"kind":"Pod"},
      {"name":"nodes","namespaced":false,"kind":"Node"}]})"));
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].kind.resource,
            (api::Resource{.version = "v1", .plural = "pods", .kind = "Pod"}));
  EXPECT_TRUE(kinds[0].kind.has_status);
  EXPECT_EQ(kinds[0].kind.short_names, std::vector<std::string>{"po"});
  EXPECT_FALSE(kinds[1].kind.resource.namespaced);
  EXPECT_EQ(kinds[0].verbs, std::vector<std::string>{"create"});
  EXPECT_EQ(kinds[0].subresources, (std::vector<std::string>{"log", "status"}));
}

}  // namespace
}  // namespace skiff::client
