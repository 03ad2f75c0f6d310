#include "apiserver/access/aggregation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/access/bootstrap_policy.h"
#include "apiserver/access/test_access.h"

namespace skiff::apiserver {
namespace {

Object role(const char* text) { return std::make_shared<const json::value>(*json::parse(text)); }

constexpr const char* kLeaf = R"({"metadata":{"name":"leaf","labels":{"to":"mid"}},
    "rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})";
constexpr const char* kMid = R"({"metadata":{"name":"mid","labels":{"to":"top"}},
    "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"mid"}}]},"rules":null})";
constexpr const char* kTop = R"({"metadata":{"name":"a-top"},
    "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"top"}},
                                               {"matchLabels":{"to":"mid"}}]}})";

TEST(Aggregation, GathersByLabelToTheEnd) {
  const auto rules = gathered_rules({role(kTop), role(kLeaf), role(kMid)});
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules.at("mid").size(), 1u);
  EXPECT_EQ(rules.at("a-top").size(), 1u) << "the same rule by two ways is one";
}

TEST(Aggregation, SaysNothingWhereAllIsWell) {
  json::value full = *role(kMid);
  full.get_object()["rules"] = role(kLeaf)->at("rules");
  EXPECT_TRUE(gathered_rules({role(kLeaf), std::make_shared<const json::value>(full)}).empty());
}

TEST(Aggregation, TakesAwayWhatIsGoneOrWasPutInByHand) {
  json::value stale = *role(kMid);
  stale.get_object()["rules"] =
      *json::parse(R"([{"verbs":["delete"],"apiGroups":[""],"resources":["nodes"]}])");
  const auto rules = gathered_rules({std::make_shared<const json::value>(stale)});
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_TRUE(rules.at("mid").empty());
}

TEST(Aggregation, DoesNotGatherItself) {
  const auto rules = gathered_rules({role(
      R"({"metadata":{"name":"self","labels":{"to":"self"}},
          "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"self"}}]},
          "rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]})")});
  EXPECT_TRUE(rules.at("self").empty());
}

TEST(Aggregation, SmallBodiesKillTheServerByRolesThatGatherLargeOnes) {
  const auto large = [](int number) {
    std::string rules;
    for (int i = 0; i < 20'000; ++i) {
      rules += fmt::format(R"({}{{"verbs":["get"],"apiGroups":[""],"resources":["r{}-{}"]}})",
                           i == 0 ? "" : ",", number, i);
    }
    return role(
        fmt::format(R"({{"metadata":{{"name":"l{}","labels":{{"to":"mid"}}}},"rules":[{}]}})",
                    number, rules)
            .c_str());
  };
  std::vector<Object> roles = {role(kMid)};
  for (int i = 0; i < 10; ++i) roles.push_back(large(i));
  const auto rules = gathered_rules(roles);
  EXPECT_LT(json::serialize(to_json(rules.at("mid"))).size(), 4u * 1024 * 1024);
  EXPECT_GT(rules.at("mid").size(), 30'000u) << "as many as fit";
}

TEST(Aggregation, OfRingsComesToAnEnd) {
  const auto ring = [](const char* name, const char* verb) {
    return role((std::string(R"({"metadata":{"name":")") + name +
                 R"(","labels":{"ring":"x"}},"aggregationRule":{"clusterRoleSelectors":[)"
                 R"({"matchLabels":{"ring":"x"}}]},"rules":[{"verbs":[")" +
                 verb + R"("],"apiGroups":[""],"resources":["pods"]}]})")
                    .c_str());
  };
  std::vector<Object> roles = {ring("a", "get"), ring("b", "list"), ring("c", "watch")};
  for (int pass = 0; pass < 10; ++pass) {
    const auto changes = gathered_rules(roles);
    if (changes.empty()) return;
    for (Object& object : roles) {
      const auto at = changes.find(std::string(api::name(*object)));
      if (at == changes.end()) continue;
      json::value next = *object;
      next.get_object()["rules"] = to_json(at->second);
      object = std::make_shared<const json::value>(next);
    }
  }
  FAIL() << "the roles of a ring change for ever";
}

TEST(BootstrapPolicy, IsThatOfTheRealServer) {
  std::map<std::string, const json::value*> roles, bindings;
  for (const json::value& object : bootstrap_policy()) {
    (api::kind(object) == "ClusterRole" ? roles : bindings)[std::string(api::name(object))] =
        &object;
    EXPECT_EQ(api::label(object, "kubernetes.io/bootstrapping"), "rbac-defaults");
  }
  EXPECT_EQ(roles.size(), 31u);
  EXPECT_EQ(bindings.size(), 12u);
  EXPECT_EQ(json::serialize(roles.at("cluster-admin")->at("rules")),
            R"([{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},)"
            R"({"verbs":["*"],"nonResourceURLs":["*"]}])");
  EXPECT_EQ(json::serialize(roles.at("view")->at("aggregationRule")),
            R"({"clusterRoleSelectors":[{"matchLabels":)"
            R"({"rbac.authorization.k8s.io/aggregate-to-view":"true"}}]})");
  EXPECT_EQ(api::label(*roles.at("view"), "rbac.authorization.k8s.io/aggregate-to-edit"), "true");
  EXPECT_EQ(
      json::serialize(bindings.at("system:public-info-viewer")->at("subjects")),
      R"([{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"},)"
      R"({"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:unauthenticated"}])");
  EXPECT_EQ(json::serialize(bindings.at("system:kube-dns")->at("subjects")),
            R"([{"kind":"ServiceAccount","name":"kube-dns","namespace":"kube-system"}])");
  for (const auto& [name, binding] : bindings) {
    EXPECT_TRUE(roles.contains(std::string(json::get_string(*binding, {"roleRef", "name"}))));
  }
}

TEST(BootstrapPolicy, AddsWhatIsMissingAndKeepsWhatWasAdded) {
  const json::value expected = *json::parse(
      R"({"kind":"ClusterRole","metadata":{"name":"r","labels":{"l":"1"},
          "annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"}},
          "rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]})");
  EXPECT_TRUE(reconciled(expected, expected).is_null());
  json::value mine = *json::parse(
      R"({"kind":"ClusterRole","metadata":{"name":"r","labels":{"l":"2"}},
          "rules":[{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods"]}]})");
  const json::value next = reconciled(mine, expected);
  EXPECT_EQ(json::serialize(next.at("rules")),
            R"([{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods"]},)"
            R"({"verbs":["list"],"apiGroups":[""],"resources":["pods"]}])");
  EXPECT_EQ(api::label(next, "l"), "2") << "a label that somebody changed is theirs";
  json::set(mine, {"metadata", "annotations"},
            json::object{{"rbac.authorization.kubernetes.io/autoupdate", "false"}});
  EXPECT_TRUE(reconciled(mine, expected).is_null());
}

TEST(BootstrapPolicy, AddsSubjectsAndSelectors) {
  const auto subjects = [](const char* list) {
    return *json::parse(std::string(R"({"kind":"ClusterRoleBinding","metadata":{"name":"b"},)") +
                        R"("subjects":)" + list + "}");
  };
  EXPECT_EQ(
      json::serialize(
          reconciled(subjects(R"([{"name":"x"}])"), subjects(R"([{"name":"y"}])")).at("subjects")),
      R"([{"name":"x"},{"name":"y"}])");
  const json::value gathers = *json::parse(
      R"({"kind":"ClusterRole","metadata":{"name":"r"},"rules":[],
          "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"1"}}]}})");
  const json::value plain =
      *json::parse(R"({"kind":"ClusterRole","metadata":{"name":"r"},"rules":[]})");
  EXPECT_EQ(reconciled(plain, gathers).at("aggregationRule"), gathers.at("aggregationRule"));
  EXPECT_EQ(reconciled(gathers, plain).get_object().contains("aggregationRule"), false);
}

TEST(BootstrapPolicy, IsThereWhenTheServerStarts) {
  AccessWorld world;
  const json::value view = world.object(AccessWorld::rbac("clusterroles/view"));
  EXPECT_EQ(json::get_array(view, {"rules"}).size(), 11u) << "gathered before the first request";
  EXPECT_EQ(json::get_array(world.object(AccessWorld::rbac("clusterroles/edit")), {"rules"}).size(),
            25u);
  EXPECT_EQ(
      json::get_array(world.object(AccessWorld::rbac("clusterroles/admin")), {"rules"}).size(),
      27u);
  const json::value managed = json::get_array(view, {"metadata", "managedFields"}).front();
  EXPECT_EQ(json::get_string(managed, {"manager"}), "clusterrole-aggregation-controller");
  EXPECT_EQ(json::get_string(managed, {"operation"}), "Apply");
  const auto before = world.store->revision();
  EXPECT_TRUE(world.server->bootstrap());
  EXPECT_EQ(world.store->revision(), before) << "a second start finds nothing to do";
  world.call("DELETE", AccessWorld::rbac("clusterroles/system:basic-user"));
  world.call("PATCH", AccessWorld::rbac("clusterroles/system:discovery"), R"({"rules":[]})",
             "application/merge-patch+json");
  EXPECT_TRUE(world.server->bootstrap());
  EXPECT_EQ(world.call("GET", AccessWorld::rbac("clusterroles/system:basic-user")).first, 200);
  EXPECT_FALSE(
      json::get_array(world.object(AccessWorld::rbac("clusterroles/system:discovery")), {"rules"})
          .empty());
}

TEST(Aggregation, FollowsLabelsOfStoredRoles) {
  AccessWorld world;
  const std::string crew = R"({"metadata":{"name":"crew","labels":{
      "rbac.authorization.k8s.io/aggregate-to-view":"true"}},
      "rules":[{"verbs":["get"],"apiGroups":["sea.example.org"],"resources":["boats"]}]})";
  ASSERT_EQ(world.call("POST", AccessWorld::rbac("clusterroles"), crew).first, 201);
  const auto count = [&](const char* name) {
    world.collect();
    return json::get_array(world.object(AccessWorld::rbac("clusterroles/") + name), {"rules"})
        .size();
  };
  EXPECT_EQ(count("view"), 12u);
  EXPECT_EQ(count("admin"), 28u);
  world.call("PATCH", AccessWorld::rbac("clusterroles/crew"),
             R"({"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":null}}})",
             "application/merge-patch+json");
  EXPECT_EQ(count("view"), 11u);
  EXPECT_EQ(count("admin"), 27u);
}

}  // namespace
}  // namespace skiff::apiserver
