// Discovery, OpenAPI, health, and who may see what.
#include "apiserver/discovery.h"

#include "apiserver/json_path.h"
#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

TEST(Discovery, IsAggregatedForThoseWhoAsk) {
  World world;
  const auto [status, list] =
      world.call("GET", "/api?timeout=32s", "", "", std::string(kAggregated));
  EXPECT_EQ(http::header(world.last.headers, "Content-Type"),
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(json::get_string(list, {"kind"}), "APIGroupDiscoveryList");
  const json::value version = json::get_array(json::get_array(list, {"items"})[0], {"versions"})[0];
  bool pods = false;
  for (const json::value& r : json::get_array(version, {"resources"})) {
    pods = pods || json::get_string(r, {"resource"}) == "pods";
  }
  EXPECT_TRUE(pods);
  http::Request again = world.request("GET", "/api", "", "", std::string(kAggregated));
  again.headers.emplace_back("If-None-Match", http::header(world.last.headers, "ETag"));
  EXPECT_EQ(world.server->handle(again).status, 304);
}

TEST(Discovery, HasTheOldDocumentsToo) {
  World world;
  EXPECT_EQ(world.call("GET", "/api").second.at("kind"), "APIVersions");
  EXPECT_EQ(world.call("GET", "/apis").second.at("kind"), "APIGroupList");
  EXPECT_EQ(world.call("GET", "/apis/apiextensions.k8s.io").second.at("kind"), "APIGroup");
  const json::value list = world.call("GET", "/api/v1").second;
  EXPECT_EQ(list.at("kind"), "APIResourceList");
  EXPECT_NE(world.last.body.find("pods/log"), std::string::npos);
  EXPECT_EQ(world.call("GET", "/apis/none.example").first, 404);
}

TEST(OpenApi, SaysThatTheServerValidatesFields) {
  World world;
  const json::value index = world.call("GET", "/openapi/v3").second;
  const std::string url(json::get_string(index, {"paths", "api/v1", "serverRelativeURL"}));
  const json::value document = world.call("GET", url).second;
  const json::value* patch =
      json::find(document, {"paths", "/api/v1/namespaces/{namespace}/pods/{name}", "patch"});
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(json::serialize(*json::find(*patch, {"x-kubernetes-group-version-kind"})),
            R"({"group":"","version":"v1","kind":"Pod"})");
  bool found = false;
  for (const json::value& p : json::get_array(*patch, {"parameters"})) {
    found = found || (json::get_string(p, {"name"}) == "fieldValidation" &&
                      json::get_string(p, {"in"}) == "query");
  }
  EXPECT_TRUE(found);
  EXPECT_NE(json::find(document, {"components", "schemas", "io.k8s.api.core.v1.Pod"}), nullptr);
  EXPECT_NE(json::find(document, {"components", "schemas", "io.k8s.api.core.v1.PodSpec"}), nullptr);
}

TEST(ServicePaths, Answer) {
  World world;
  EXPECT_EQ(world.server->handle(world.request("GET", "/healthz")).body, "ok");
  EXPECT_NE(world.server->handle(world.request("GET", "/readyz?verbose")).body.find("[+]store ok"),
            std::string::npos);
  EXPECT_EQ(world.call("GET", "/version").second.at("gitVersion"), "v1.34.0+skiff");
  EXPECT_EQ(world.call("GET", "/version").second.at("minor"), "34");
  EXPECT_NE(world.server->handle(world.request("GET", "/metrics"))
                .body.find("apiserver_request_total{verb=\"get\",code=\"200\"}"),
            std::string::npos);
  EXPECT_EQ(world.server->handle(world.request("GET", "/nothing")).body, "404 page not found\n");
}

TEST(ExtraRoutes, StandBehindTheSameDoor) {
  World world;
  world.server->add_route({.method = "GET", .prefix = "/", .handler = [](const http::Request&) {
                             return http::Response{.body = "page"};
                           }});
  world.server->add_route({.prefix = "/jobs", .handler = [](const http::Request&) {
                             return http::Response{.body = "jobs"};
                           }});
  EXPECT_EQ(world.server->handle(world.request("GET", "/")).body, "page");
  EXPECT_EQ(world.server->handle(world.request("GET", "/jobs/x?y=z")).body, "jobs");
  EXPECT_EQ(world.server->handle({.target = "/jobs"}).status, 403);
  EXPECT_EQ(world.server->handle(world.request("GET", "/jobsite")).status, 404);
}

struct Caller {
  const char* name;
  http::Headers headers;
  http::Peer peer;
  const char* target;
  int status;
};

TEST(Access, DependsOnWhoCalls) {
  const http::Peer local{.same_user = true, .loopback = true};
  const Caller cases[] = {
      {"nobody sees health", {}, {}, "/healthz", 200},
      {"nobody sees the version", {}, {}, "/version", 200},
      {"nobody sees objects", {}, {}, "/api/v1/pods", 403},
      {"the token opens", {{"Authorization", "Bearer secret"}}, {}, "/api/v1/pods", 200},
      {"a wrong token does not", {{"Authorization", "Bearer other"}}, local, "/api/v1/pods", 401},
      {"the token as a password",
       {{"Authorization", "Basic eDpzZWNyZXQ="}},
       {},
       "/api/v1/pods",
       200},
      {"the token in the address", {}, {}, "/api/v1/pods?token=secret", 200},
      {"the cookie", {{"Cookie", "a=b; skiff_token=secret"}}, {}, "/api/v1/pods", 200},
      {"the cookie from another origin",
       {{"Cookie", "skiff_token=secret"},
        {"Host", "localhost:7420"},
        {"Origin", "http://localhost:7421"}},
       {},
       "/api/v1/pods",
       403},
      {"the same user on loopback", {{"Host", "localhost:7420"}}, local, "/api/v1/pods", 200},
      {"the same user by another host name",
       {{"Host", "evil.example"}},
       local,
       "/api/v1/pods",
       403},
      {"a page of another site",
       {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}},
       local,
       "/api/v1/pods",
       403},
      {"a page of another port",
       {{"Host", "localhost"}, {"Sec-Fetch-Site", "same-site"}},
       local,
       "/api/v1/pods",
       403},
      {"a certificate of an administrator",
       {},
       {.tls = true, .common_name = "me", .organizations = {"system:masters"}},
       "/api/v1/pods",
       200},
      {"a certificate of somebody", {}, {.tls = true, .common_name = "you"}, "/api/v1/pods", 403},
  };
  World world;
  for (const Caller& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(
        world.server->handle({.target = c.target, .headers = c.headers, .peer = c.peer}).status,
        c.status);
  }
  const auto refused =
      world.server->handle({.target = World::pods(), .peer = {.tls = true, .common_name = "you"}});
  EXPECT_NE(refused.body.find(R"(pods is forbidden: User \"you\" cannot list resource \"pods\" in )"
                              R"(API group \"\" in the namespace \"default\")"),
            std::string::npos)
      << refused.body;
  ServerOptions closed;
  closed.auth.local_trust = false;
  World strict(std::move(closed));
  EXPECT_EQ(
      strict.server
          ->handle({.target = "/api/v1/pods", .headers = {{"Host", "localhost"}}, .peer = local})
          .status,
      403);
}

TEST(JsonPath, FollowsWhatColumnsUse) {
  const json::value object =
      json::parse(R"({"a":{"b.c":7,"list":[{"t":"X","s":1},{"t":"Y","s":2}]}})").value();
  const std::pair<const char*, const char*> cases[] = {
      {".a.list[0].t", R"("X")"}, {".a.list[-1:].t", R"("Y")"}, {".a.list[?(@.t==\"Y\")].s", "2"},
      {"{.a['b.c']}", "7"},       {".a.list[*].s", "1,2"},      {".a.none.x", ""},
      {".a.b\\.c", "7"},          {".a.list[5].t", ""}};
  for (const auto& [path, expected] : cases) {
    SCOPED_TRACE(path);
    const auto parsed = JsonPath::parse(path);
    ASSERT_TRUE(parsed);
    std::string found;
    for (const json::value* v : parsed->find(object)) {
      found += (found.empty() ? "" : ",") + json::serialize(*v);
    }
    EXPECT_EQ(found, expected);
  }
  EXPECT_FALSE(JsonPath::parse(".a[").has_value());
  EXPECT_FALSE(JsonPath::parse(".a[x]").has_value());
}

}  // namespace
}  // namespace skiff::apiserver
