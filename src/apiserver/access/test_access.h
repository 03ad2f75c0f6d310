// A World with RBAC and tokens, and callers that are not the administrator.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/access/access.h"
#include "apiserver/test_world.h"
#include "base/base64.h"

namespace skiff::apiserver {

// The four kinds of RBAC, where the built-in list does not have them.
inline std::vector<api::Kind> kinds_with_rbac() {
  std::vector<api::Kind> kinds = api::builtin_kinds();
  for (const auto& [plural, kind, namespaced] :
       {std::tuple{"roles", "Role", true}, std::tuple{"rolebindings", "RoleBinding", true},
        std::tuple{"clusterroles", "ClusterRole", false},
        std::tuple{"clusterrolebindings", "ClusterRoleBinding", false}}) {
    const api::Resource resource{std::string(kRbacGroup), "v1", plural, kind, namespaced};
    if (std::ranges::any_of(kinds, [&](const api::Kind& k) { return k.resource == resource; })) {
      continue;
    }
    kinds.push_back({.resource = resource,
                     .singular = resource.plural.substr(0, resource.plural.size() - 1),
                     .has_generation = false,
                     .schema = "io.k8s.api.rbac.v1." + resource.kind});
  }
  return kinds;
}

// Signs by a word in front: whoever knows it is us. Real signatures are net/'s to test.
inline TokenCodec toy_codec() {
  return {.sign = [](const json::object& claims) -> Result<std::string> {
            return "ours." + base64::encode(json::serialize(claims));
          },
          .verify = [](std::string_view token) -> Result<json::object> {
            if (!token.starts_with("ours.")) return fail(Code::kUnauthorized, "not ours");
            const auto text = base64::decode(token.substr(5));
            const auto parsed = text ? json::parse(*text) : fail(Code::kUnauthorized, "not ours");
            if (!parsed) return fail(Code::kUnauthorized, "not ours");
            return parsed->as_object();
          },
          .key_set = {{"keys", json::array{json::object{{"kid", "toy"}}}}},
          .algorithms = {"TOY"}};
}

inline ServerOptions access_options() {
  return {.tokens = {.codec = toy_codec()}, .authority = "AUTHORITY"};
}

class AccessWorld : public World {
 public:
  AccessWorld() : World(access_options(), kinds_with_rbac()) {}

  using Answer = std::pair<int, json::value>;
  Answer send(http::Request request) {
    last = server->handle(request);
    flush();
    auto parsed = json::parse(last.body);
    return {last.status, parsed ? *parsed : json::value(json::string(last.body))};
  }
  // As somebody with a client certificate.
  Answer as(std::string user, std::vector<std::string> groups, std::string method,
            std::string target, std::string body = {}, http::Headers headers = {}) {
    http::Request out{
        .method = std::move(method), .target = std::move(target), .body = std::move(body)};
    out.headers = std::move(headers);
    out.headers.emplace_back("Content-Type", "application/json");
    out.peer = {.tls = true, .common_name = std::move(user), .organizations = std::move(groups)};
    return send(std::move(out));
  }
  Answer bearing(const std::string& token, std::string method, std::string target,
                 std::string body = {}) {
    http::Request out{
        .method = std::move(method), .target = std::move(target), .body = std::move(body)};
    out.headers = {{"Authorization", "Bearer " + token}, {"Content-Type", "application/json"}};
    return send(std::move(out));
  }

  static std::string rbac(std::string_view plural, std::string_view ns = "") {
    std::string out = "/apis/rbac.authorization.k8s.io/v1/";
    if (!ns.empty()) out += "namespaces/" + std::string(ns) + "/";
    return out + std::string(plural);
  }
  static std::string role(std::string_view name, std::string_view rules,
                          std::string_view more = "") {
    return R"({"metadata":{"name":")" + std::string(name) + R"("},"rules":)" + std::string(rules) +
           std::string(more) + "}";
  }
  static std::string binding(std::string_view name, std::string_view role_kind,
                             std::string_view role, std::string_view kind, std::string_view who) {
    return R"({"metadata":{"name":")" + std::string(name) +
           R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":")" +
           std::string(role_kind) + R"(","name":")" + std::string(role) +
           R"("},"subjects":[{"kind":")" + std::string(kind) + R"(","name":")" + std::string(who) +
           R"("}]})";
  }
  // A ClusterRole with these rules, for this user everywhere.
  void grant(std::string_view user, std::string_view rules) {
    const std::string name = "for-" + std::string(user);
    EXPECT_EQ(call("POST", rbac("clusterroles"), role(name, rules)).first, 201) << last.body;
    EXPECT_EQ(
        call("POST", rbac("clusterrolebindings"), binding(name, "ClusterRole", name, "User", user))
            .first,
        201)
        << last.body;
  }
  json::value object(const std::string& target) { return call("GET", target).second; }
};

inline std::string message(const std::pair<int, json::value>& answer) {
  return std::string(json::get_string(answer.second, {"message"}));
}

}  // namespace skiff::apiserver
