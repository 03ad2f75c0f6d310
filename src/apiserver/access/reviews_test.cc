#include "apiserver/access/reviews.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/access/test_access.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr const char* kReviewsPodReader =
    R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},
        {"verbs":["get"],"nonResourceURLs":["/metrics"]}])";

std::string authz(std::string_view plural) {
  return "/apis/authorization.k8s.io/v1/" + std::string(plural);
}
std::string authn(std::string_view plural) {
  return "/apis/authentication.k8s.io/v1/" + std::string(plural);
}
std::string status(const std::pair<int, json::value>& answer) {
  const json::value* at = json::find(answer.second, {"status"});
  return at == nullptr ? "" : json::serialize(*at);
}

TEST(Reviews, SayWhatOthersMay) {
  AccessWorld world;
  world.grant("ann", kReviewsPodReader);
  const auto ask = [&](const char* spec) {
    return status(
        world.call("POST", authz("subjectaccessreviews"), std::string(R"({"spec":)") + spec + "}"));
  };
  EXPECT_EQ(ask(R"({"user":"ann","resourceAttributes":{"verb":"get","resource":"pods"}})"),
            R"({"allowed":true,"reason":"RBAC: allowed by ClusterRoleBinding \"for-ann\" of )"
            R"(ClusterRole \"for-ann\" to User \"ann\""})");
  EXPECT_EQ(world.last.status, 201);
  EXPECT_EQ(ask(R"({"user":"ann","resourceAttributes":{"verb":"list","resource":"pods"}})"),
            R"({"allowed":false})");
  EXPECT_EQ(ask(R"({"user":"ann","nonResourceAttributes":{"verb":"get","path":"/metrics"}})"),
            R"({"allowed":true,"reason":"RBAC: allowed by ClusterRoleBinding \"for-ann\" of )"
            R"(ClusterRole \"for-ann\" to User \"ann\""})");
  EXPECT_EQ(ask(R"({"groups":["system:masters"],"resourceAttributes":{"verb":"fly"}})"),
            R"({"allowed":true})");
  EXPECT_EQ(ask(R"({"user":"x","resourceAttributes":{"verb":"get","resource":"pods",
                    "fieldSelector":{"rawSelector":"a b"}}})"),
            R"({"allowed":false,"evaluationError":"spec.resourceAttributes.fieldSelector ignored )"
            R"(due to parse error"})");
}

TEST(Reviews, AreRefusedWhereTheyMakeNoSense) {
  AccessWorld world;
  const auto ask = [&](const char* body) {
    const auto answer = world.call("POST", authz("subjectaccessreviews"), body);
    return std::to_string(answer.first) + " " + message(answer);
  };
  EXPECT_EQ(
      ask(R"({"spec":{"user":"a"}})"),
      R"(422 .authorization.k8s.io "" is invalid: spec.resourceAttributes: )"
      "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
      "specified");
  EXPECT_TRUE(ask(R"({"spec":{"resourceAttributes":{"verb":"get"}}})")
                  .contains("spec.user: Invalid value: \"\": at least one of user or group must be "
                            "specified"));
  EXPECT_TRUE(ask(R"({"spec":{"user":"a","resourceAttributes":{},"nonResourceAttributes":{}}})")
                  .contains(R"(spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: )"
                            "cannot be specified in combination with resourceAttributes"));
  EXPECT_TRUE(ask(R"({"metadata":{"name":"x"},"spec":{"user":"a","resourceAttributes":{}}})")
                  .contains("metadata: Invalid value: {\"name\":\"x\"}: must be empty"));
  EXPECT_TRUE(ask(R"({"spec":{"user":"a","resourceAttributes":{"labelSelector":{}}}})")
                  .contains("spec.resourceAttributes.labelSelector.requirements: Required value"));
  EXPECT_TRUE(ask(R"({"kind":"Pod"})").starts_with("400 "));
  EXPECT_TRUE(ask(R"([])").starts_with("400 "));
}

TEST(Reviews, BelongToWhoAsks) {
  AccessWorld world;
  const auto managed = [&](const std::string& path, const char* spec) {
    const auto answer =
        world.call("POST", path + "?fieldManager=ann", std::string(R"({"spec":)") + spec + "}");
    const json::array& list = json::get_array(answer.second, {"metadata", "managedFields"});
    return list.empty() ? std::string("nobody")
                        : fmt::format("{} {}", json::get_string(list[0], {"manager"}),
                                      json::serialize(list[0].at("fieldsV1")));
  };
  EXPECT_EQ(managed(authz("selfsubjectaccessreviews"),
                    R"({"nonResourceAttributes":{"path":"/x","verb":"get"}})"),
            R"(ann {"f:spec":{"f:nonResourceAttributes":{".":{},"f:path":{},"f:verb":{}}}})");
  EXPECT_EQ(managed(authn("tokenreviews"), R"({"token":"x"})"), R"(ann {"f:spec":{"f:token":{}}})");
  EXPECT_EQ(managed(authz("selfsubjectrulesreviews"), R"({"namespace":"default"})"), "nobody");
}

TEST(Reviews, AreNeverStored) {
  AccessWorld world;
  const auto before = world.store->revision();
  world.call("POST", authz("selfsubjectaccessreviews"),
             R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}})");
  EXPECT_EQ(world.store->revision(), before);
  EXPECT_EQ(world.call("GET", authz("selfsubjectaccessreviews")).first, 405);
  EXPECT_EQ(world.call("DELETE", authz("subjectaccessreviews")).first, 405);
}

TEST(Reviews, AreListedByDiscovery) {
  AccessWorld world;
  const json::value list = world.object("/apis/authentication.k8s.io/v1");
  EXPECT_EQ(json::serialize(list.at("resources")),
            R"([{"name":"selfsubjectreviews","singularName":"selfsubjectreview",)"
            R"("namespaced":false,"kind":"SelfSubjectReview","verbs":["create"]},)"
            R"({"name":"tokenreviews","singularName":"tokenreview","namespaced":false,)"
            R"("kind":"TokenReview","verbs":["create"]}])");
  EXPECT_TRUE(json::serialize(world.object("/api/v1"))
                  .contains(R"("name":"serviceaccounts/token","singularName":"",)"
                            R"("namespaced":true,"kind":"TokenRequest","verbs":["create"],)"
                            R"("group":"authentication.k8s.io","version":"v1")"));
}

TEST(Reviews, SayWhatIMay) {
  AccessWorld world;
  world.grant("ann", kReviewsPodReader);
  const auto ask = [&](const char* verb) {
    return status(world.as("ann", {}, "POST", authz("selfsubjectaccessreviews"),
                           std::string(R"({"spec":{"resourceAttributes":{"resource":"pods",)") +
                               R"("namespace":"default","verb":")" + verb + R"("}}})"));
  };
  EXPECT_TRUE(ask("get").starts_with(R"({"allowed":true)"));
  EXPECT_EQ(ask("delete"), R"({"allowed":false})");
}

TEST(Reviews, AskAboutOneNamespace) {
  AccessWorld world;
  world.call("POST", world.rbac("rolebindings", "default"),
             world.binding("v", "ClusterRole", "view", "User", "ann"));
  const auto ask = [&](const char* ns, const char* more = "") {
    return world.call("POST",
                      "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
                      std::string(R"({"spec":{"user":"ann","resourceAttributes":{"verb":"list",)") +
                          R"("resource":"pods","namespace":")" + ns + "\"}" + more + "}}");
  };
  EXPECT_TRUE(status(ask("default")).starts_with(R"({"allowed":true)")) << world.last.body;
  EXPECT_EQ(json::get_string(ask("default").second, {"metadata", "namespace"}), "default");
  EXPECT_TRUE(message(ask("other")).contains("must match metadata.namespace"));
  EXPECT_TRUE(message(ask("default", R"(,"nonResourceAttributes":{"path":"/"})"))
                  .contains("disallowed on this kind of request"));
}

TEST(Reviews, ListMyRules) {
  AccessWorld world;
  world.grant("ann", kReviewsPodReader);
  const auto answer = world.as("ann", {}, "POST", authz("selfsubjectrulesreviews"),
                               R"({"spec":{"namespace":"default"}})");
  EXPECT_EQ(answer.first, 201);
  const std::string text = status(answer);
  EXPECT_TRUE(text.contains(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})")) << text;
  EXPECT_TRUE(text.contains(R"({"verbs":["get"],"nonResourceURLs":["/metrics"]})")) << text;
  EXPECT_TRUE(text.contains(R"("incomplete":false)")) << text;
  EXPECT_TRUE(text.contains("selfsubjectrulesreviews")) << "what everybody may";
  EXPECT_EQ(world.as("ann", {}, "POST", authz("selfsubjectrulesreviews"), R"({"spec":{}})").first,
            400);
}

// A thousand bindings of a hundred bytes repeated one large role a thousand times, and the rules
// of several large roles were one answer.
TEST(Reviews, SmallBodiesKillTheServerByListsOfLargeRoles) {
  AccessWorld world;
  std::string verbs;
  for (int i = 0; i < 100'000; ++i) verbs += fmt::format(R"({}"verb-{}")", i == 0 ? "" : ",", i);
  const std::string rules = R"([{"apiGroups":[""],"resources":["pods"],"verbs":[)" + verbs + "]}]";
  const auto asked = [&] {
    return world
        .as("ann", {}, "POST", authz("selfsubjectrulesreviews"),
            R"({"spec":{"namespace":"default"}})")
        .second;
  };
  world.grant("ann", rules);
  for (int i = 0; i < 5; ++i) {
    world.call("POST", world.rbac("clusterrolebindings"),
               world.binding(fmt::format("again-{}", i), "ClusterRole", "for-ann", "User", "ann"));
  }
  json::value answer = asked();
  EXPECT_EQ(json::get_bool(answer, {"status", "incomplete"}), false);
  EXPECT_LT(world.last.body.size(), 2 * rules.size()) << "the role is listed once";
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("other-{}", i);
    world.call("POST", world.rbac("clusterroles"), world.role(name, rules));
    world.call("POST", world.rbac("clusterrolebindings"),
               world.binding(name, "ClusterRole", name, "User", "ann"));
  }
  answer = asked();
  EXPECT_EQ(json::get_bool(answer, {"status", "incomplete"}), true);
  EXPECT_EQ(json::get_string(answer, {"status", "evaluationError"}),
            "there are more rules than one answer can hold; ask about single actions with a "
            "SelfSubjectAccessReview");
  EXPECT_LT(world.last.body.size(), 4u * 1024 * 1024);
}

TEST(Reviews, SayWhoIAm) {
  AccessWorld world;
  const auto answer =
      world.as("ann", {"team"}, "POST", authn("selfsubjectreviews"),
               R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})");
  EXPECT_EQ(answer.first, 201);
  EXPECT_EQ(status(answer),
            R"({"userInfo":{"username":"ann","groups":["team","system:authenticated"]}})");
  EXPECT_EQ(api::kind(answer.second), "SelfSubjectReview");
}

TEST(Reviews, SayWhoseTokenItIs) {
  AccessWorld world;
  const auto ask = [&](const std::string& token, const char* more = "") {
    return world.call("POST", authn("tokenreviews"),
                      R"({"spec":{"token":")" + token + "\"" + more + "}}");
  };
  EXPECT_EQ(status(ask("secret")),
            R"({"authenticated":true,"user":{"username":"skiff:admin",)"
            R"("groups":["system:masters","system:authenticated"]},)"
            R"("audiences":["https://kubernetes.default.svc.cluster.local"]})");
  EXPECT_EQ(status(ask("secret", R"(,"audiences":["vault"])")),
            R"({"user":{},"error":"invalid bearer token"})");
  EXPECT_EQ(status(ask("other")), R"({"user":{},"error":"invalid bearer token"})");
  EXPECT_EQ(status(ask("a.b.c")), R"({"user":{},"error":"not ours"})");
  EXPECT_EQ(ask("").first, 400);
  const auto minted = world.server->access().tokens().mint(
      {.ns = "default", .account = "default", .audiences = {"vault"}});
  const std::string text = status(ask(minted->token, R"(,"audiences":["vault","x"])"));
  EXPECT_TRUE(text.starts_with(
      R"({"authenticated":true,"user":{"username":"system:serviceaccount:default:default","uid":)"))
      << text;
  EXPECT_TRUE(text.ends_with(R"("audiences":["vault"]})")) << text;
}

TEST(Reviews, GiveTokens) {
  AccessWorld world;
  const std::string at = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const auto answer = world.call("POST", at,
                                 R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",
                                     "spec":{"audiences":null,"expirationSeconds":600}})");
  ASSERT_EQ(answer.first, 201) << world.last.body;
  EXPECT_EQ(api::name(answer.second), "default");
  EXPECT_EQ(json::get_string(answer.second, {"status", "expirationTimestamp"}),
            rfc3339(world.clock.now() + std::chrono::seconds(600)));
  const std::string token(json::get_string(answer.second, {"status", "token"}));
  EXPECT_EQ(world.bearing(token, "GET", "/api").first, 200);
  EXPECT_EQ(world.call("POST", at, "{}").first, 201) << "an hour for this server is the default";
  const auto refusal = [&](const char* body) {
    const auto refused = world.call("POST", at, body);
    return std::to_string(refused.first) + " " + message(refused);
  };
  EXPECT_EQ(refusal(R"({"spec":{"expirationSeconds":599}})"),
            R"(422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: )"
            "Invalid value: 599: may not specify a duration less than 10 minutes");
  EXPECT_TRUE(refusal(R"({"spec":{"expirationSeconds":4294967297}})")
                  .contains("may not specify a duration larger than 2^32 seconds"));
  EXPECT_EQ(
      refusal(R"({"metadata":{"name":"x"}})"),
      R"(422 TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid )"
      R"(value: "x": must match the service account name if specified)");
  EXPECT_TRUE(refusal(R"({"metadata":{"uid":"u"}})").starts_with("409 "));
  EXPECT_EQ(refusal(R"({"kind":"Pod"})").substr(0, 3), "400");
  EXPECT_EQ(world.call("POST", "/api/v1/namespaces/default/serviceaccounts/no/token", "{}").first,
            404);
  EXPECT_EQ(world.call("GET", at).first, 405);
}

TEST(Reviews, AnswerCodeInThisProcessToo) {
  AccessWorld world;
  const auto results =
      world.server->transact({{.resource = {"", "v1", "serviceaccounts", "ServiceAccount", true},
                               .ns = "default",
                               .name = "default",
                               .subresource = "token",
                               .body = json::object{{"spec", {{"expirationSeconds", 3607}}}}}});
  ASSERT_TRUE(results.back()) << results.back().error().message;
  EXPECT_FALSE(json::get_string(*results.back(), {"status", "token"}).empty());
}

TEST(Reviews, NeedTheRightToAsk) {
  AccessWorld world;
  const auto ask = [&](const std::string& path) {
    const auto answer = world.as("ann", {}, "POST", path, "{}");
    return std::to_string(answer.first) + " " + message(answer);
  };
  EXPECT_EQ(ask(authn("tokenreviews")),
            R"(403 tokenreviews.authentication.k8s.io is forbidden: User "ann" cannot create )"
            R"(resource "tokenreviews" in API group "authentication.k8s.io" at the cluster scope)");
  EXPECT_EQ(ask("/api/v1/namespaces/default/serviceaccounts/default/token"),
            R"(403 serviceaccounts "default" is forbidden: User "ann" cannot create resource )"
            R"("serviceaccounts/token" in API group "" in the namespace "default")");
}

}  // namespace
}  // namespace skiff::apiserver
