#include "apiserver/access/access.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/access/test_access.h"

namespace skiff::apiserver {
namespace {

std::string told_answer(const std::pair<int, json::value>& answer) {
  return std::to_string(answer.first) + " " + message(answer);
}

TEST(Callers, AreToldWhatTheyMayNot) {
  AccessWorld world;
  const auto get = [&](const char* method, const char* target) {
    return told_answer(world.as("ann", {}, method, target, "{}"));
  };
  EXPECT_EQ(get("GET", "/api/v1/namespaces/ns/pods"),
            R"(403 pods is forbidden: User "ann" cannot list resource "pods" in API group "" in )"
            R"(the namespace "ns")");
  EXPECT_EQ(get("GET", "/api/v1/pods?watch=1"),
            R"(403 pods is forbidden: User "ann" cannot watch resource "pods" in API group "" at )"
            "the cluster scope");
  EXPECT_EQ(get("DELETE", "/apis/apps/v1/namespaces/ns/deployments/d"),
            R"(403 deployments.apps "d" is forbidden: User "ann" cannot delete resource )"
            R"("deployments" in API group "apps" in the namespace "ns")");
  EXPECT_EQ(get("GET", "/api/v1/namespaces/ns/pods/p/log"),
            R"(403 pods "p" is forbidden: User "ann" cannot get resource "pods/log" in API group )"
            R"("" in the namespace "ns")");
  EXPECT_EQ(get("GET", "/api/v1/namespaces/ns"),
            R"(403 namespaces "ns" is forbidden: User "ann" cannot get resource "namespaces" in )"
            R"(API group "" in the namespace "ns")");
  EXPECT_EQ(get("GET", "/metrics"), R"(403 forbidden: User "ann" cannot get path "/metrics")");
  EXPECT_EQ(get("POST", "/skiff/v1/stop"),
            R"(403 forbidden: User "ann" cannot post path "/skiff/v1/stop")");
  EXPECT_EQ(told_answer(world.as("<b>&", {}, "GET", "/metrics")),
            R"(403 forbidden: User "&lt;b&gt;&amp;" cannot get path "/metrics")");
}

TEST(Callers, AreToldOfRolesThatAreAbsent) {
  AccessWorld world;
  world.call("POST", world.rbac("clusterrolebindings"),
             world.binding("b", "ClusterRole", "gone", "User", "ann"));
  EXPECT_EQ(told_answer(world.as("ann", {}, "GET", "/metrics")),
            R"(403 forbidden: User "ann" cannot get path "/metrics": RBAC: )"
            R"(clusterrole.rbac.authorization.k8s.io "gone" not found)");
}

TEST(Callers, WithoutNameSeeHealthAndVersionOnly) {
  AccessWorld world;
  const auto nobody = [&](const char* target) { return world.send({.target = target}); };
  for (const char* open : {"/healthz", "/livez", "/readyz", "/version", "/livez/ping"}) {
    EXPECT_EQ(nobody(open).first, 200) << open;
  }
  EXPECT_EQ(told_answer(nobody("/api")),
            R"(403 forbidden: User "system:anonymous" cannot get path "/api")");
  EXPECT_EQ(told_answer(nobody("/api/v1/namespaces/default/pods")),
            R"(403 pods is forbidden: User "system:anonymous" cannot list resource "pods" in API )"
            R"(group "" in the namespace "default")");
  world.call(
      "POST", world.rbac("clusterrolebindings"),
      world.binding("open", "ClusterRole", "system:discovery", "Group", "system:unauthenticated"));
  EXPECT_EQ(nobody("/api").first, 200) << "unless somebody lets them";
}

TEST(Callers, WithANameSeeDiscoveryAndWhatTheyMay) {
  AccessWorld world;
  for (const char* open : {"/api", "/apis", "/apis/apiextensions.k8s.io/v1", "/openapi/v3"}) {
    EXPECT_EQ(world.as("ann", {}, "GET", open).first, 200) << open;
  }
  EXPECT_EQ(world.as("ann", {}, "GET", "/api/v1/pods").first, 403);
}

TEST(Callers, GainAndLoseRightsAtOnce) {
  AccessWorld world;
  const auto pods = [&] { return world.as("ann", {}, "GET", world.pods()).first; };
  EXPECT_EQ(pods(), 403);
  world.call("POST", world.rbac("rolebindings", "default"),
             world.binding("b", "ClusterRole", "view", "User", "ann"));
  EXPECT_EQ(pods(), 200);
  EXPECT_EQ(world.as("ann", {}, "GET", "/api/v1/pods").first, 403) << "only in that namespace";
  EXPECT_EQ(world.as("ann", {}, "GET", "/api/v1/namespaces/default").first, 200);
  EXPECT_EQ(world.as("ann", {}, "POST", world.pods(), world.pod("p")).first, 403);
  EXPECT_EQ(world.as("ann", {}, "GET", "/api/v1/namespaces/default/secrets").first, 403);
  world.call("DELETE", world.rbac("rolebindings/b", "default"));
  EXPECT_EQ(pods(), 403);
}

TEST(Callers, MayOneObjectByItsName) {
  AccessWorld world;
  world.grant("ann", R"([{"verbs":["get","list","watch"],"apiGroups":[""],
                          "resources":["configmaps"],"resourceNames":["a"]}])");
  const std::string at = "/api/v1/namespaces/default/configmaps";
  world.call("POST", at, R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(world.as("ann", {}, "GET", at + "/a").first, 200);
  EXPECT_EQ(world.as("ann", {}, "GET", at + "/b").first, 403);
  EXPECT_EQ(world.as("ann", {}, "GET", at).first, 403);
  EXPECT_EQ(world.as("ann", {}, "GET", at + "?fieldSelector=metadata.name%3Da").first, 200);
}

TEST(Callers, ActAsOthers) {
  AccessWorld world;
  http::Request request = world.request("GET", "/api/v1/pods");
  request.headers.emplace_back("Impersonate-User", "bob");
  EXPECT_EQ(told_answer(world.send(request)),
            R"(403 pods is forbidden: User "bob" cannot list resource "pods" in API group "" at )"
            "the cluster scope");
  request.headers.emplace_back("Impersonate-Group", "system:masters");
  EXPECT_EQ(world.send(request).first, 200);
  EXPECT_EQ(told_answer(world.as("ann", {}, "GET", "/api", "", {{"Impersonate-User", "bob"}})),
            R"(403 users "bob" is forbidden: User "ann" cannot impersonate resource "users" in )"
            R"(API group "" at the cluster scope)");
  http::Request odd = world.request("GET", "/api?x=1");
  odd.headers.emplace_back("Impersonate-Group", "team");
  world.send(odd);
  EXPECT_EQ(world.last.status, 500);
  EXPECT_EQ(world.last.body,
            "Internal Server Error: \"/api?x=1\": requested [{Group  team    }] without "
            "impersonating a user\n");
}

TEST(Callers, MeetTheSameDoorOnEveryRoute) {
  ServerOptions options = access_options();
  const auto fine = [](const http::Request&) { return http::Response{.body = "fine"}; };
  options.routes = {
      {.prefix = "/tool", .handler = fine},
      {.prefix = "/jobs", .handler = fine, .needs = [](const http::Request&, const http::Url& url) {
         return Action{.verb = "list",
                       .group = "kubeflow.org",
                       .resource = "tfjobs",
                       .ns = url.param("ns").value_or("")};
       }}};
  World world(std::move(options), kinds_with_rbac());
  const auto ann = [&](const char* target) {
    return world.server->handle({.target = target, .peer = {.tls = true, .common_name = "ann"}})
        .status;
  };
  EXPECT_EQ(ann("/tool"), 403);
  EXPECT_EQ(ann("/jobs?ns=default"), 403);
  world.call("POST", AccessWorld::rbac("clusterroles"),
             AccessWorld::role("r", R"([{"verbs":["get"],"nonResourceURLs":["/tool"]},
                 {"verbs":["list"],"apiGroups":["kubeflow.org"],"resources":["tfjobs"]}])"));
  world.call("POST", AccessWorld::rbac("rolebindings", "default"),
             AccessWorld::binding("b", "ClusterRole", "r", "User", "ann"));
  EXPECT_EQ(ann("/tool"), 403) << "a path needs a cluster binding";
  EXPECT_EQ(ann("/jobs?ns=default"), 200);
  EXPECT_EQ(ann("/jobs?ns=other"), 403);
  world.call("POST", AccessWorld::rbac("clusterrolebindings"),
             AccessWorld::binding("b", "ClusterRole", "r", "User", "ann"));
  EXPECT_EQ(ann("/tool"), 200);
}

TEST(Callers, FindTheIssuerOfTokens) {
  AccessWorld world;
  const auto robot = [&](const char* target) {
    return world.as("system:serviceaccount:a:b", {"system:serviceaccounts"}, "GET", target);
  };
  EXPECT_EQ(json::serialize(robot("/openid/v1/jwks").second), R"({"keys":[{"kid":"toy"}]})");
  EXPECT_EQ(http::header(world.last.headers, "Content-Type"), "application/jwk-set+json");
  const json::value config = robot("/.well-known/openid-configuration").second;
  EXPECT_EQ(json::get_string(config, {"issuer"}), "https://kubernetes.default.svc.cluster.local");
  EXPECT_EQ(json::get_string(config, {"jwks_uri"}),
            "https://kubernetes.default.svc.cluster.local/openid/v1/jwks");
  EXPECT_EQ(json::serialize(config.at("id_token_signing_alg_values_supported")), R"(["TOY"])");
  EXPECT_EQ(world.as("ann", {}, "GET", "/openid/v1/jwks").first, 403);
}

TEST(Namespaces, ComeWithAServiceAccountAndTheAuthority) {
  AccessWorld world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"new"}})");
  for (const char* ns : {"default", "kube-system", "new"}) {
    const std::string at = std::string("/api/v1/namespaces/") + ns;
    EXPECT_EQ(world.call("GET", at + "/serviceaccounts/default").first, 200) << ns;
    EXPECT_EQ(
        json::get_string(world.object(at + "/configmaps/kube-root-ca.crt"), {"data", "ca.crt"}),
        "AUTHORITY")
        << ns;
  }
  world.call("POST", "/api/v1/namespaces?dryRun=All", R"({"metadata":{"name":"dry"}})");
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/dry/serviceaccounts/default").first, 404);
}

TEST(Namespaces, GetBackWhatTheyLose) {
  AccessWorld world;
  const std::string at = "/api/v1/namespaces/default";
  world.call("DELETE", at + "/serviceaccounts/default");
  world.call("PATCH", at + "/configmaps/kube-root-ca.crt",
             R"({"data":{"ca.crt":"EVIL","more":"x"}})", "application/merge-patch+json");
  world.collect();
  EXPECT_EQ(world.call("GET", at + "/serviceaccounts/default").first, 200);
  EXPECT_EQ(json::serialize(world.object(at + "/configmaps/kube-root-ca.crt").at("data")),
            R"({"ca.crt":"AUTHORITY"})");
  world.call("DELETE", at + "/configmaps/kube-root-ca.crt");
  world.collect();
  EXPECT_EQ(world.call("GET", at + "/configmaps/kube-root-ca.crt").first, 200);
  EXPECT_FALSE(world.server->collect_garbage()) << "and then there is nothing to do";
}

TEST(Namespaces, ThatGoAreNotFurnishedAgain) {
  AccessWorld world;
  world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"old"}})");
  world.collect();
  world.call("DELETE", "/api/v1/namespaces/old");
  world.collect();
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/old").first, 404);
  EXPECT_EQ(world.store->list("serviceaccounts", "old").entries.size(), 0u);
}

}  // namespace
}  // namespace skiff::apiserver
