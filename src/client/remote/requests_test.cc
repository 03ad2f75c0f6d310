#include "client/remote/requests.h"

#include <gtest/gtest.h>

namespace skiff::client {
namespace {

const api::Resource kRequestedPods{.version = "v1", .plural = "pods", .kind = "Pod"};
const api::Resource kRoles{.group = "rbac.authorization.k8s.io",
                           .version = "v1",
                           .plural = "clusterroles",
                           .kind = "ClusterRole",
                           .namespaced = false};

TEST(Requests, ReadsGoToTheirEscapedPaths) {
  EXPECT_EQ(object_target(kRequestedPods, "a", "b", "log"), "/api/v1/namespaces/a/pods/b/log");
  EXPECT_EQ(object_target(kRoles, "", "system:node/x"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2Fx");
  EXPECT_EQ(list_target(kRequestedPods, "", {}, "", ""), "/api/v1/pods");
  EXPECT_EQ(list_target(kRequestedPods, "a", {.label_selector = "x=1,y", .field_selector = "z!=2"},
                        "5", "n="),
            "/api/v1/namespaces/a/pods?labelSelector=x%3D1%2Cy&fieldSelector=z%21%3D2&limit=5"
            "&continue=n%3D");
  EXPECT_EQ(watch_target(kRequestedPods, 7),
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=7");
}

TEST(Requests, WritesCarryTheirPreconditionsWhereServersLook) {
  struct Case {
    std::string_view name;
    Write write;
    std::string_view method, target, type, body;
  };
  const json::value object = json::parse(R"({"metadata":{"name":"n"}})").value();
  const Case cases[] = {
      {"a create goes to the collection",
       {.verb = Verb::kCreate, .resource = kRequestedPods, .ns = "a", .body = object},
       "POST",
       "/api/v1/namespaces/a/pods",
       "application/json",
       R"({"metadata":{"name":"n"}})"},
      {"a create of a sub-resource goes to the object",
       {.verb = Verb::kCreate,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .subresource = "binding",
        .body = object},
       "POST",
       "/api/v1/namespaces/a/pods/n/binding",
       "application/json",
       R"({"metadata":{"name":"n"}})"},
      {"an update",
       {.verb = Verb::kUpdate,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .body = object,
        .uid = "u",
        .resource_version = "7"},
       "PUT",
       "/api/v1/namespaces/a/pods/n",
       "application/json",
       R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7"}})"},
      {"a merge patch",
       {.verb = Verb::kMergePatch,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .subresource = "status",
        .body = json::object{},
        .uid = "u"},
       "PATCH",
       "/api/v1/namespaces/a/pods/n/status",
       "application/merge-patch+json",
       R"({"metadata":{"uid":"u"}})"},
      {"a JSON patch",
       {.verb = Verb::kJsonPatch,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .body = json::array{json::object{{"op", "remove"}}},
        .uid = "u",
        .resource_version = "7"},
       "PATCH",
       "/api/v1/namespaces/a/pods/n",
       "application/json-patch+json",
       R"([{"op":"test","path":"/metadata/uid","value":"u"},)"
       R"({"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove"}])"},
      {"an apply",
       {.verb = Verb::kApply, .resource = kRequestedPods, .ns = "a", .name = "n", .body = object},
       "PATCH",
       "/api/v1/namespaces/a/pods/n?fieldManager=skiff",
       "application/apply-patch+yaml",
       R"({"metadata":{"name":"n"}})"},
      {"an apply that takes fields of others",
       {.verb = Verb::kApply,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .subresource = "status",
        .body = object,
        .uid = "u",
        .field_manager = "a b",
        .force = true},
       "PATCH",
       "/api/v1/namespaces/a/pods/n/status?fieldManager=a%20b&force=true",
       "application/apply-patch+yaml",
       R"({"metadata":{"name":"n","uid":"u"}})"},
      {"a delete",
       {.verb = Verb::kDelete,
        .resource = kRequestedPods,
        .ns = "a",
        .name = "n",
        .body = json::object{{"gracePeriodSeconds", 0}},
        .uid = "u"},
       "DELETE",
       "/api/v1/namespaces/a/pods/n",
       "application/json",
       R"({"gracePeriodSeconds":0,"apiVersion":"v1","kind":"DeleteOptions",)"
       R"("preconditions":{"uid":"u"}})"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const http::Request request = write_request(c.write);
    EXPECT_EQ(request.method, c.method);
    EXPECT_EQ(request.target, c.target);
    EXPECT_EQ(http::header(request.headers, "Content-Type"), c.type);
    EXPECT_EQ(request.body, c.body);
  }
}

TEST(Requests, BriefOnesAskForMetadataAndNoWarnings) {
  const Write create{.resource = kRequestedPods, .ns = "a", .body = json::object{}};
  const http::Request brief = brief_request(create);
  EXPECT_EQ(brief.target, "/api/v1/namespaces/a/pods?fieldValidation=Ignore");
  EXPECT_TRUE(http::header(brief.headers, "Accept").contains("as=PartialObjectMetadata"));
  EXPECT_TRUE(http::header(brief.headers, "Accept").ends_with(",application/json"));
  EXPECT_EQ(brief.body, write_request(create).body);
  const http::Request applied =
      brief_request({.verb = Verb::kApply, .resource = kRequestedPods, .ns = "a", .name = "n"});
  EXPECT_TRUE(applied.target.ends_with("?fieldManager=skiff&fieldValidation=Ignore"));
  const Write removal{.verb = Verb::kDelete, .resource = kRequestedPods, .ns = "a", .name = "n"};
  EXPECT_EQ(brief_request(removal).target, write_request(removal).target);
}

TEST(Requests, APatchOfNothingIsARead) {
  Write write{.verb = Verb::kMergePatch, .resource = kRequestedPods, .ns = "a", .name = "n"};
  EXPECT_FALSE(changes_nothing(write)) << "null is no patch";
  write.body = json::object{};
  EXPECT_TRUE(changes_nothing(write));
  EXPECT_EQ(metadata_request(write).method, "GET");
  EXPECT_EQ(metadata_request(write).target, "/api/v1/namespaces/a/pods/n");
  EXPECT_TRUE(metadata_request(write).body.empty());
  write.verb = Verb::kUpdate;
  EXPECT_FALSE(changes_nothing(write));
  write = {.verb = Verb::kMergePatch, .body = json::object{{"spec", 1}}};
  EXPECT_FALSE(changes_nothing(write));
}

}  // namespace
}  // namespace skiff::client
