#include "apiserver/access/escalation.h"

#include <gtest/gtest.h>

#include "apiserver/access/test_access.h"

namespace skiff::apiserver {
namespace {

constexpr const char* kRoleWriter =
    R"([{"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],
         "resources":["roles","rolebindings","clusterroles","clusterrolebindings"]},
        {"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])";
constexpr const char* kEscalationPodReader =
    R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])";
constexpr const char* kPodWriter =
    R"([{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods","secrets"]}])";

// Ann writes roles and reads pods. The star gives her "bind" and "escalate" too, so her verbs are
// listed.
class Escalation : public ::testing::Test {
 protected:
  Escalation() {
    std::string rules = kRoleWriter;
    rules.replace(rules.find("\"*\""), 3, R"("get","create","update","patch","delete")");
    world.grant("ann", rules);
  }
  std::pair<int, std::string> ann(std::string method, std::string target, std::string body,
                                  std::string type = "") {
    http::Headers headers;
    if (!type.empty()) headers.emplace_back("Content-Type", type);
    const auto answer =
        world.as("ann", {"team"}, std::move(method), std::move(target), std::move(body), headers);
    return {answer.first, message(answer)};
  }
  AccessWorld world;
};

TEST_F(Escalation, LetsPeopleGiveWhatTheyHave) {
  EXPECT_EQ(ann("POST", world.rbac("clusterroles"), world.role("r", kEscalationPodReader)).first,
            201);
  EXPECT_EQ(
      ann("POST", world.rbac("roles", "default"), world.role("r", kEscalationPodReader)).first,
      201);
  EXPECT_EQ(ann("POST", world.rbac("clusterrolebindings"),
                world.binding("b", "ClusterRole", "r", "User", "bob"))
                .first,
            201);
}

TEST_F(Escalation, RefusesMoreThanTheyHave) {
  const auto [code, why] = ann("POST", world.rbac("clusterroles"), world.role("r", kPodWriter));
  EXPECT_EQ(code, 403);
  EXPECT_EQ(why,
            "clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ann\" "
            "(groups=[\"team\" \"system:authenticated\"]) is attempting to grant RBAC permissions "
            "not currently held:\n"
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}\n"
            "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\"]}");
  EXPECT_EQ(ann("POST", world.rbac("roles", "default"), world.role("r", kPodWriter)).first, 403);
}

TEST_F(Escalation, RefusesMoreByUpdateAndPatch) {
  ASSERT_EQ(
      ann("POST", world.rbac("roles", "default"), world.role("r", kEscalationPodReader)).first,
      201);
  const std::string at = world.rbac("roles/r", "default");
  EXPECT_EQ(ann("PUT", at, world.role("r", kPodWriter)).first, 403);
  EXPECT_EQ(ann("PATCH", at, std::string(R"({"rules":)") + kPodWriter + "}",
                "application/merge-patch+json")
                .first,
            403);
  EXPECT_EQ(ann("PUT", at, world.role("r", "[]")).first, 200) << "less is always possible";
}

TEST_F(Escalation, LetsOwnersOfARoleChangeWithoutItsRights) {
  ASSERT_EQ(world.call("POST", world.rbac("roles", "default"), world.role("big", kPodWriter)).first,
            201);
  EXPECT_EQ(ann("PATCH", world.rbac("roles/big", "default"),
                R"({"metadata":{"finalizers":["a.b/c"]}})", "application/merge-patch+json")
                .first,
            200);
  EXPECT_EQ(ann("PATCH", world.rbac("roles/big", "default"), R"({"metadata":{"labels":{"a":"b"}}})",
                "application/merge-patch+json")
                .first,
            403)
      << "a label may be what somebody gathers by";
}

TEST_F(Escalation, RefusesBindingsToBiggerRoles) {
  world.call("POST", world.rbac("clusterroles"), world.role("big", kPodWriter));
  const auto [code, why] = ann("POST", world.rbac("rolebindings", "default"),
                               world.binding("b", "ClusterRole", "big", "User", "ann"));
  EXPECT_EQ(code, 403);
  EXPECT_TRUE(
      why.starts_with("rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user "
                      "\"ann\" (groups="))
      << why;
  EXPECT_EQ(ann("POST", world.rbac("clusterrolebindings"),
                world.binding("b", "ClusterRole", "cluster-admin", "User", "ann"))
                .first,
            403);
}

TEST_F(Escalation, OfAnAbsentRoleIsNotFound) {
  const auto [code, why] = ann("POST", world.rbac("rolebindings", "default"),
                               world.binding("b", "Role", "absent", "User", "ann"));
  EXPECT_EQ(code, 404);
  EXPECT_EQ(why, R"(roles.rbac.authorization.k8s.io "absent" not found)");
  EXPECT_EQ(world
                .call("POST", world.rbac("rolebindings", "default"),
                      world.binding("b", "Role", "absent", "User", "ann"))
                .first,
            201)
      << "whoever may do everything may bind what comes later";
}

TEST_F(Escalation, IsAllowedByTheVerbsForIt) {
  world.call("POST", world.rbac("clusterroles"), world.role("big", kPodWriter));
  world.grant("cat", R"([{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],
       "resources":["rolebindings"]},{"verbs":["bind"],
       "apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],
       "resourceNames":["big"]}])");
  EXPECT_EQ(world
                .as("cat", {}, "POST", world.rbac("rolebindings", "default"),
                    world.binding("b", "ClusterRole", "big", "User", "cat"))
                .first,
            201);
  EXPECT_EQ(world
                .as("cat", {}, "POST", world.rbac("rolebindings", "default"),
                    world.binding("c", "ClusterRole", "admin", "User", "cat"))
                .first,
            403);
  world.grant("dan", R"([{"verbs":["create","escalate"],
       "apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"]}])");
  EXPECT_EQ(
      world.as("dan", {}, "POST", world.rbac("clusterroles"), world.role("r", kPodWriter)).first,
      201);
}

TEST_F(Escalation, ByAggregationNeedsEverything) {
  const char* gathers =
      R"(,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]})";
  const auto [code, why] = ann("POST", world.rbac("clusterroles"), world.role("g", "[]", gathers));
  EXPECT_EQ(code, 403);
  EXPECT_EQ(why,
            R"(clusterroles.rbac.authorization.k8s.io "g" is forbidden: must have cluster-admin )"
            "privileges to use the aggregationRule");
  ASSERT_EQ(world.call("POST", world.rbac("clusterroles"), world.role("g", "[]", gathers)).first,
            201);
  EXPECT_EQ(ann("PUT", world.rbac("clusterroles/g"), world.role("g", "[]")).first, 403)
      << "nor may it be taken away";
  world.call("POST", world.rbac("clusterrolebindings"),
             world.binding("boss", "ClusterRole", "cluster-admin", "User", "eve"));
  EXPECT_EQ(
      world.as("eve", {}, "POST", world.rbac("clusterroles"), world.role("h", "[]", gathers)).first,
      201)
      << world.last.body;
}

}  // namespace
}  // namespace skiff::apiserver
