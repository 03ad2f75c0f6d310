#include "apiserver/access/tokens.h"

#include <gtest/gtest.h>

#include <functional>

#include "api/meta.h"
#include "apiserver/access/test_access.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

using namespace std::chrono_literals;

class Tokens : public ::testing::Test {
 protected:
  Tokens() {
    world.call("POST", "/api/v1/namespaces/default/serviceaccounts",
               R"({"metadata":{"name":"robot"}})");
  }
  ServiceTokens& tokens() { return world.server->access().tokens(); }
  std::string mint(TokenWish wish = {}) {
    wish.ns = "default";
    wish.account = "robot";
    const auto minted = tokens().mint(wish);
    EXPECT_TRUE(minted) << minted.error().message;
    return minted ? minted->token : "";
  }
  TokenWish bound(const char* kind, const char* name, const char* uid = "") {
    return {.bound = TokenWish::Bound{.api_version = "v1", .kind = kind, .name = name, .uid = uid}};
  }
  // The same token with other claims, signed as ours are.
  std::string changed(const std::string& token, const std::function<void(json::value&)>& change) {
    json::value claims = *toy_codec().verify(token);
    change(claims);
    return *toy_codec().sign(claims.as_object());
  }
  std::string verdict(const std::string& token, std::vector<std::string> audiences = {}) {
    const auto bearer = tokens().check(token, std::move(audiences));
    return bearer ? "good" : bearer.error().message;
  }
  void make_pod(const char* name, const char* node = "") {
    std::string body = world.pod(name);
    body.replace(body.find(R"("spec":{)"), 8,
                 std::string(R"("spec":{"serviceAccountName":"robot",)") +
                     (*node ? std::string(R"("nodeName":")") + node + "\"," : ""));
    ASSERT_EQ(world.call("POST", world.pods(), body).first, 201) << world.last.body;
  }

  AccessWorld world;
};

TEST_F(Tokens, SayWhoTheyAre) {
  const auto bearer = tokens().check(mint());
  ASSERT_TRUE(bearer) << bearer.error().message;
  EXPECT_EQ(bearer->identity.user, "system:serviceaccount:default:robot");
  EXPECT_EQ(join(bearer->identity.groups, " "),
            "system:serviceaccounts system:serviceaccounts:default system:authenticated");
  EXPECT_EQ(bearer->identity.uid,
            api::uid(world.object("/api/v1/namespaces/default/serviceaccounts/robot")));
  ASSERT_EQ(bearer->identity.extra.size(), 1u);
  EXPECT_TRUE(bearer->identity.extra.at("authentication.kubernetes.io/credential-id")
                  .front()
                  .starts_with("JTI="));
}

TEST_F(Tokens, CarryTheClaimsOfTheRealServer) {
  make_pod("p", "n1");
  const auto claims = toy_codec().verify(mint(bound("Pod", "p")));
  const json::value all = *claims;
  EXPECT_EQ(json::get_string(all, {"iss"}), "https://kubernetes.default.svc.cluster.local");
  EXPECT_EQ(json::get_string(all, {"sub"}), "system:serviceaccount:default:robot");
  EXPECT_EQ(json::serialize(all.at("aud")), R"(["https://kubernetes.default.svc.cluster.local"])");
  EXPECT_EQ(*json::get_int(all, {"exp"}) - *json::get_int(all, {"iat"}), 3600);
  EXPECT_EQ(*json::get_int(all, {"nbf"}), *json::get_int(all, {"iat"}));
  EXPECT_EQ(json::get_string(all, {"jti"}).size(), 36u);
  EXPECT_EQ(json::get_string(all, {"kubernetes.io", "namespace"}), "default");
  EXPECT_EQ(json::get_string(all, {"kubernetes.io", "pod", "name"}), "p");
  EXPECT_EQ(json::get_string(all, {"kubernetes.io", "pod", "uid"}),
            api::uid(world.object(world.pods("/p"))));
  EXPECT_EQ(json::serialize(all.at("kubernetes.io").at("node")), R"({"name":"n1"})")
      << "a node that is not registered has no uid";
  EXPECT_EQ(json::get_string(all, {"kubernetes.io", "serviceaccount", "name"}), "robot");
}

TEST_F(Tokens, EndWithTheirTime) {
  const std::string token = mint({.seconds = 600});
  world.clock.advance(600s);
  EXPECT_EQ(verdict(token), "good") << "clocks differ a little";
  world.clock.advance(61s);
  EXPECT_EQ(verdict(token), "service account token has expired");
}

TEST_F(Tokens, OfProjectedVolumesOutliveProgramsThatReadThemOnce) {
  make_pod("p");
  TokenWish wish = bound("Pod", "p");
  wish.seconds = 3607;
  const std::string token = mint(wish);
  const json::value claims = *toy_codec().verify(token);
  EXPECT_EQ(*json::get_int(claims, {"exp"}) - *json::get_int(claims, {"iat"}), 365 * 24 * 3600);
  EXPECT_EQ(
      *json::get_int(claims, {"kubernetes.io", "warnafter"}) - *json::get_int(claims, {"iat"}),
      3607);
  world.clock.advance(24h);
  EXPECT_EQ(verdict(token), "good");
  wish.audiences = {"vault"};
  const std::string other = mint(wish);
  world.clock.advance(2h);
  EXPECT_EQ(verdict(other, {"vault"}), "service account token has expired");
}

TEST_F(Tokens, DoNotBeginBeforeTheirTime) {
  const std::string token = mint();
  const auto later = [](const char* claim, std::int64_t seconds) {
    return [=](json::value& claims) {
      json::set(claims, {claim}, *json::get_int(claims, {claim}) + seconds);
    };
  };
  EXPECT_EQ(verdict(changed(token, later("nbf", 50))), "good");
  EXPECT_EQ(verdict(changed(token, later("nbf", 100))), "service account token is not valid yet");
  EXPECT_EQ(verdict(changed(token, later("iat", 100))),
            "service account token is issued in the future");
}

TEST_F(Tokens, WithOddTimesAreRefused) {
  const std::string token = mint();
  EXPECT_EQ(verdict(changed(token, [](json::value& c) { c.as_object().erase("exp"); })),
            "service account token has no expiry");
  for (const json::value& odd : {json::value("9999999999"), json::value(nullptr), json::value(-1),
                                 json::value(1e300), json::value(true)}) {
    EXPECT_EQ(verdict(changed(token, [&](json::value& c) { json::set(c, {"exp"}, odd); })),
              "service account token has expired")
        << json::serialize(odd);
  }
}

TEST_F(Tokens, AreForTheirAudience) {
  const std::string vault = mint({.audiences = {"vault"}});
  EXPECT_EQ(verdict(vault), R"(token audiences ["vault"] is invalid for the target audiences )"
                            R"(["https://kubernetes.default.svc.cluster.local"])");
  EXPECT_EQ(verdict(vault, {"vault", "x"}), "good");
  EXPECT_EQ(
      verdict(mint(), {"vault"}),
      R"(token audiences ["https://kubernetes.default.svc.cluster.local"] is invalid for the )"
      R"(target audiences ["vault"])");
  EXPECT_EQ(verdict(changed(mint(), [](json::value& c) { c.as_object().erase("aud"); })),
            R"(token audiences [] is invalid for the target audiences )"
            R"(["https://kubernetes.default.svc.cluster.local"])");
  EXPECT_EQ(world.bearing(vault, "GET", "/api").first, 401);
}

TEST_F(Tokens, OfAnotherIssuerAreRefused) {
  const std::string token =
      changed(mint(), [](json::value& c) { json::set(c, {"iss"}, "https://elsewhere"); });
  EXPECT_EQ(verdict(token), "invalid bearer token");
}

TEST_F(Tokens, WhoseSubjectIsNotTheirAccountAreRefused) {
  const std::string token = changed(mint(), [](json::value& c) {
    json::set(c, {"sub"}, "system:serviceaccount:kube-system:admin");
  });
  EXPECT_EQ(verdict(token), "sub claim is invalid");
  EXPECT_EQ(verdict(changed(mint(), [](json::value& c) { json::set(c, {"kubernetes.io"}, 7); })),
            "kubernetes.io claim is missing");
}

TEST_F(Tokens, EndWithTheirAccount) {
  const std::string token = mint();
  ASSERT_EQ(world.bearing(token, "GET", "/api").first, 200) << world.last.body;
  const std::string at = "/api/v1/namespaces/default/serviceaccounts";
  world.call("DELETE", at + "/robot");
  EXPECT_EQ(verdict(token), R"(serviceaccounts "robot" not found)");
  EXPECT_EQ(world.bearing(token, "GET", "/api").first, 401);
  world.call("POST", at, R"({"metadata":{"name":"robot"}})");
  EXPECT_TRUE(verdict(token).starts_with("service account UID (")) << "another of the same name";
}

TEST_F(Tokens, OfADeletedAccountEndEvenWhereAFinalizerHoldsIt) {
  const std::string token = mint();
  const std::string at = "/api/v1/namespaces/default/serviceaccounts/robot";
  world.call("PATCH", at, R"({"metadata":{"finalizers":["a.b/c"]}})",
             "application/merge-patch+json");
  world.call("DELETE", at);
  EXPECT_EQ(verdict(token), "good") << "for a moment, so that work can be finished";
  world.clock.advance(2min);
  EXPECT_EQ(verdict(token), "service account default/robot has been deleted");
}

TEST_F(Tokens, EndWithThePodTheyAreBoundTo) {
  make_pod("p");
  const std::string token = mint(bound("Pod", "p"));
  const auto bearer = tokens().check(token);
  ASSERT_TRUE(bearer);
  EXPECT_EQ(bearer->identity.extra.at("authentication.kubernetes.io/pod-name").front(), "p");
  EXPECT_EQ(bearer->identity.extra.at("authentication.kubernetes.io/pod-uid").front(),
            api::uid(world.object(world.pods("/p"))));
  world.call("DELETE", world.pods("/p?gracePeriodSeconds=0"));
  EXPECT_EQ(verdict(token), "service account token has been invalidated");
  make_pod("p");
  EXPECT_TRUE(verdict(token).starts_with("pod UID (")) << "another of the same name";
}

TEST_F(Tokens, EndWithTheSecretOrNodeTheyAreBoundTo) {
  world.call("POST", "/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
  world.call("POST", "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  const std::string by_secret = mint(bound("Secret", "s")), by_node = mint(bound("Node", "n1"));
  EXPECT_EQ(verdict(by_secret), "good");
  const auto bearer = tokens().check(by_node);
  ASSERT_TRUE(bearer) << bearer.error().message;
  EXPECT_EQ(bearer->identity.extra.at("authentication.kubernetes.io/node-name").front(), "n1");
  world.call("DELETE", "/api/v1/namespaces/default/secrets/s");
  world.call("DELETE", "/api/v1/nodes/n1");
  EXPECT_EQ(verdict(by_secret), "service account token has been invalidated");
  EXPECT_EQ(verdict(by_node), "service account token has been invalidated");
}

TEST_F(Tokens, AreBoundOnlyToWhatFits) {
  make_pod("p");
  world.call("POST", world.pods(), world.pod("other"));
  const auto refusal = [&](TokenWish wish) {
    wish.ns = "default";
    wish.account = wish.account.empty() ? "robot" : wish.account;
    const auto minted = tokens().mint(wish);
    return minted ? "minted" : minted.error().message;
  };
  EXPECT_EQ(refusal(bound("Pod", "absent")), R"(pods "absent" not found)");
  EXPECT_EQ(refusal(bound("Pod", "other")),
            R"(cannot bind token for serviceaccount "robot" to pod running with different )"
            "serviceaccount name.");
  EXPECT_EQ(refusal(bound("ConfigMap", "x")),
            "cannot bind token to object of type /v1, Kind=ConfigMap");
  EXPECT_TRUE(refusal(bound("Pod", "p", "u-1")).contains("the UID in the bound object reference"));
  TokenWish nobody;
  nobody.account = "nobody";
  EXPECT_EQ(refusal(nobody), R"(serviceaccounts "nobody" not found)");
}

TEST_F(Tokens, ThatAreNotOursAreNobodys) {
  for (const char* junk : {"", "ours.", "ours.e30=", "theirs", "a.b.c"}) {
    EXPECT_NE(verdict(junk), "good") << junk;
    EXPECT_EQ(world.bearing(junk + std::string("x"), "GET", "/version").first, 401)
        << "wrong credentials are refused where none are needed";
  }
}

TEST_F(Tokens, InSecretsAreFilledInAndEndWithThem) {
  const std::string at = "/api/v1/namespaces/default/secrets";
  world.call(
      "POST", at,
      R"({"metadata":{"name":"s","annotations":{"kubernetes.io/service-account.name":"robot"}},
                 "type":"kubernetes.io/service-account-token"})");
  world.collect();
  const json::value secret = world.object(at + "/s");
  const auto data = [&](const char* key) {
    return base64::decode(json::get_string(secret, {"data", key})).value_or("");
  };
  EXPECT_EQ(data("namespace"), "default");
  EXPECT_EQ(data("ca.crt"), "AUTHORITY");
  EXPECT_EQ(api::annotation(secret, "kubernetes.io/service-account.uid"),
            api::uid(world.object("/api/v1/namespaces/default/serviceaccounts/robot")));
  const std::string token = data("token");
  EXPECT_EQ(verdict(token), "good");
  world.clock.advance(10000h);
  EXPECT_EQ(verdict(token), "good") << "they do not end by time";
  world.call("PATCH", at + "/s", R"({"data":{"token":"eA=="}})", "application/merge-patch+json");
  EXPECT_EQ(verdict(token), "Token does not match server's copy");
  world.call("DELETE", at + "/s");
  EXPECT_EQ(verdict(token), "Token has been invalidated");
}

TEST_F(Tokens, InSecretsGoWithTheirAccount) {
  const std::string at = "/api/v1/namespaces/default/secrets";
  world.call(
      "POST", at,
      R"({"metadata":{"name":"s","annotations":{"kubernetes.io/service-account.name":"robot"}},
                 "type":"kubernetes.io/service-account-token"})");
  world.collect();
  world.call("DELETE", "/api/v1/namespaces/default/serviceaccounts/robot");
  world.collect();
  EXPECT_EQ(world.call("GET", at + "/s").first, 404);
}

TEST_F(Tokens, NeedAKey) {
  World plain({}, kinds_with_rbac());
  ServiceTokens& none = plain.server->access().tokens();
  EXPECT_EQ(none.mint({.ns = "default", .account = "default"}).error().code,
            Code::kServiceUnavailable);
  EXPECT_FALSE(none.check("ours.e30="));
  EXPECT_EQ(plain.call("GET", "/openid/v1/jwks").first, 404);
}

}  // namespace
}  // namespace skiff::apiserver
