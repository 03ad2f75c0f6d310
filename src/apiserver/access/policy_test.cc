#include "apiserver/access/policy.h"

#include <gtest/gtest.h>

namespace skiff::apiserver {
namespace {

Rules rules(const char* verb, const char* resource) {
  return std::make_shared<const std::vector<Rule>>(
      std::vector<Rule>{{.verbs = {verb}, .groups = {""}, .resources = {resource}}});
}

std::shared_ptr<const Binding> bind(const char* ns, const char* name, const char* role_kind,
                                    const char* role, std::vector<Binding::Subject> subjects) {
  return std::make_shared<const Binding>(Binding{.ns = ns,
                                                 .name = name,
                                                 .role_kind = role_kind,
                                                 .role_name = role,
                                                 .subjects = std::move(subjects)});
}

Policy readers_and_writers() {
  return Policy(
      {{{"", "reader"}, rules("get", "pods")},
       {{"ns", "writer"}, rules("create", "pods")},
       {{"other", "writer"}, rules("delete", "pods")}},
      {bind("", "everywhere", "ClusterRole", "reader", {{"User", "", "ann"}}),
       bind("ns", "here", "ClusterRole", "reader", {{"Group", "", "team"}}),
       bind("ns", "write", "Role", "writer",
            {{"User", "", "bob"}, {"Group", "", "team"}, {"ServiceAccount", "", "robot"}}),
       bind("ns", "abroad", "ClusterRole", "reader", {{"ServiceAccount", "far", "robot"}}),
       bind("", "homeless", "ClusterRole", "reader", {{"ServiceAccount", "", "robot"}}),
       bind("", "local", "Role", "writer", {{"User", "", "cat"}}),
       bind("ns", "gone", "ClusterRole", "absent", {{"User", "", "dan"}}),
       bind("ns", "gone2", "Role", "absent", {{"User", "", "dan"}}),
       bind("ns", "odd", "Thing", "x", {{"User", "", "eve"}}),
       bind("ns", "odder", "ClusterRole", "reader", {{"Robot", "", "fay"}})});
}

bool may(const Policy& p, const Identity& who, const char* verb, const char* ns) {
  return p.decide(who, {.verb = verb, .resource = "pods", .ns = ns}).allowed;
}

TEST(Policy, GivesClusterBindingsEverywhere) {
  const Policy p = readers_and_writers();
  const Identity ann{.user = "ann"};
  EXPECT_TRUE(may(p, ann, "get", "ns"));
  EXPECT_TRUE(may(p, ann, "get", ""));
  EXPECT_FALSE(may(p, ann, "create", "ns"));
  EXPECT_FALSE(may(p, {.user = "anna"}, "get", "ns"));
}

TEST(Policy, GivesRoleBindingsInTheirNamespace) {
  const Policy p = readers_and_writers();
  const Identity bob{.user = "bob"};
  EXPECT_TRUE(may(p, bob, "create", "ns"));
  EXPECT_FALSE(may(p, bob, "create", "other"));
  EXPECT_FALSE(may(p, bob, "create", "")) << "not the whole cluster";
  EXPECT_FALSE(may(p, bob, "delete", "other")) << "a role of the same name elsewhere";
  EXPECT_TRUE(may(p, {.user = "x", .groups = {"a", "team"}}, "get", "ns"));
  EXPECT_FALSE(may(p, {.user = "team"}, "get", "ns")) << "a user is no group";
}

TEST(Policy, KnowsServiceAccountsByTheirUserName) {
  const Policy p = readers_and_writers();
  EXPECT_TRUE(may(p, {.user = "system:serviceaccount:ns:robot"}, "create", "ns"))
      << "the binding's own namespace where none is given";
  EXPECT_FALSE(may(p, {.user = "system:serviceaccount:far:robot"}, "create", "ns"));
  EXPECT_TRUE(may(p, {.user = "system:serviceaccount:far:robot"}, "get", "ns"));
  EXPECT_FALSE(may(p, {.user = "robot"}, "get", "ns"));
  EXPECT_FALSE(may(p, {.user = "system:serviceaccount::robot"}, "get", ""))
      << "a cluster binding without a namespace names nobody";
}

TEST(Policy, ARoleHasNoPlaceInAClusterBinding) {
  EXPECT_FALSE(may(readers_and_writers(), {.user = "cat"}, "create", "ns"));
}

TEST(Policy, PathsNeedAClusterBinding) {
  const Policy p({{{"", "urls"},
                   std::make_shared<const std::vector<Rule>>(
                       std::vector<Rule>{{.verbs = {"get"}, .urls = {"/metrics"}}})}},
                 {bind("", "a", "ClusterRole", "urls", {{"User", "", "ann"}}),
                  bind("ns", "b", "ClusterRole", "urls", {{"User", "", "bob"}})});
  const Action metrics{.verb = "get", .ns = "ns", .on_path = true, .path = "/metrics"};
  EXPECT_TRUE(p.decide({.user = "ann"}, metrics).allowed);
  EXPECT_FALSE(p.decide({.user = "bob"}, metrics).allowed);
}

TEST(Policy, SaysWhy) {
  const Policy p = readers_and_writers();
  const auto why = [&](const Identity& who, const char* verb) {
    return p.decide(who, {.verb = verb, .resource = "pods", .ns = "ns"}).reason;
  };
  EXPECT_EQ(
      why({.user = "ann"}, "get"),
      R"(RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to User "ann")");
  EXPECT_EQ(why({.user = "x", .groups = {"team"}}, "create"),
            R"(RBAC: allowed by RoleBinding "write/ns" of Role "writer" to Group "team")");
  EXPECT_EQ(
      why({.user = "system:serviceaccount:ns:robot"}, "create"),
      R"(RBAC: allowed by RoleBinding "write/ns" of Role "writer" to ServiceAccount "robot/ns")");
  EXPECT_EQ(why({.user = "dan"}, "get"),
            R"(RBAC: [clusterrole.rbac.authorization.k8s.io "absent" not found, )"
            R"(role.rbac.authorization.k8s.io "absent" not found])");
  EXPECT_EQ(why({.user = "eve"}, "get"), R"(RBAC: unsupported role reference kind: "Thing")");
  EXPECT_EQ(why({.user = "fay"}, "get"), "");
  EXPECT_EQ(why({.user = "root", .groups = {"system:masters"}}, "fly"), "");
}

TEST(Policy, MastersMayEverything) {
  EXPECT_TRUE(
      Policy().decide({.user = "x", .groups = {"system:masters"}}, {.verb = "fly"}).allowed);
}

TEST(Policy, ListsEachBindingOnce) {
  const Policy p = readers_and_writers();
  std::vector<std::string> problems;
  std::size_t rules = 0;
  for (const Rules& role : p.rules_for({.user = "bob", .groups = {"team"}}, "ns", &problems)) {
    rules += role->size();
  }
  EXPECT_EQ(rules, 2u) << "bob is named beside his group";
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(p.rules_for({.user = "dan"}, "ns", &problems).size(), 0u);
  EXPECT_EQ(problems.size(), 2u);
  EXPECT_EQ(p.rules_for({.user = "bob"}, "").size(), 0u);
}

TEST(Policy, ReadsBindings) {
  const Binding read = binding_of(*json::parse(
      R"({"metadata":{"name":"b","namespace":"ns"},"roleRef":{"kind":"Role","name":"r"},
          "subjects":[{"kind":"User","name":"u"},
                      {"kind":"ServiceAccount","name":"s","namespace":"n"}]})"));
  EXPECT_EQ(read.ns + read.name + read.role_kind + read.role_name, "nsbRoler");
  ASSERT_EQ(read.subjects.size(), 2u);
  EXPECT_EQ(read.subjects[1].ns, "n");
  EXPECT_EQ(binding_of(*json::parse("[]")).subjects.size(), 0u);
}

}  // namespace
}  // namespace skiff::apiserver
