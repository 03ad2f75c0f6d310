#include "apiserver/access/impersonation.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace skiff::apiserver {
namespace {

const Identity kRootIdentity{.user = "root", .groups = {"system:masters"}};

// Ann may become the user "bob", anybody of group "team", and the account ns/robot.
Policy impersonators() {
  const auto rule = [](const char* group, const char* resource, const char* name) {
    return Rule{
        .verbs = {"impersonate"}, .groups = {group}, .resources = {resource}, .names = {name}};
  };
  auto cluster = std::make_shared<const std::vector<Rule>>(
      std::vector<Rule>{rule("", "users", "bob"), rule("", "groups", "team"),
                        rule("authentication.k8s.io", "uids", "u-1"),
                        rule("authentication.k8s.io", "userextras/scopes", "view")});
  auto local = std::make_shared<const std::vector<Rule>>(
      std::vector<Rule>{rule("", "serviceaccounts", "robot")});
  const auto bind = [](const char* ns, const char* kind) {
    return std::make_shared<const Binding>(Binding{.ns = ns,
                                                   .name = "b",
                                                   .role_kind = kind,
                                                   .role_name = "r",
                                                   .subjects = {{"User", "", "ann"}}});
  };
  return Policy({{{"", "r"}, cluster}, {{"ns", "r"}, local}},
                {bind("", "ClusterRole"), bind("ns", "Role")});
}

std::string identity_text(const Result<Identity>& who) {
  if (!who) return who.error().message;
  std::string out = who->user + " [" + join(who->groups, ",") + "]";
  if (!who->uid.empty()) out += " uid=" + who->uid;
  for (const auto& [key, values] : who->extra) out += " " + key + "=" + join(values, "+");
  return out;
}

std::string become(const Identity& who, const http::Headers& headers) {
  return identity_text(impersonate(impersonators(), who, headers));
}

TEST(Impersonation, IsAskedForByHeaders) {
  EXPECT_FALSE(impersonates({{"Accept", "x"}, {"Impersonate", "x"}}));
  for (const char* name :
       {"impersonate-user", "Impersonate-Group", "IMPERSONATE-UID", "Impersonate-Extra-Scopes"}) {
    EXPECT_TRUE(impersonates({{name, "x"}})) << name;
  }
}

TEST(Impersonation, TakesUserAndGroups) {
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", "bob"}}), "bob [system:authenticated]")
      << "and loses what the requester was";
  EXPECT_EQ(
      become(kRootIdentity,
             {{"impersonate-user", "bob"}, {"Impersonate-Group", "a"}, {"impersonate-group", "b"}}),
      "bob [a,b,system:authenticated]");
  EXPECT_EQ(become(kRootIdentity,
                   {{"Impersonate-User", "bob"}, {"Impersonate-Group", "system:unauthenticated"}}),
            "bob [system:unauthenticated]");
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", "system:anonymous"}}),
            "system:anonymous [system:unauthenticated]");
}

TEST(Impersonation, KnowsTheGroupsOfServiceAccounts) {
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", "system:serviceaccount:ns:robot"}}),
            "system:serviceaccount:ns:robot "
            "[system:serviceaccounts,system:serviceaccounts:ns,system:authenticated]");
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", "system:serviceaccount:ns:robot"},
                                   {"Impersonate-Group", "only"}}),
            "system:serviceaccount:ns:robot [only,system:authenticated]");
}

TEST(Impersonation, TakesUidAndExtra) {
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", "bob"},
                                   {"Impersonate-Uid", "u-1"},
                                   {"Impersonate-Extra-Scopes", "view"},
                                   {"Impersonate-Extra-Scopes", "edit"},
                                   {"Impersonate-Extra-Acme.com%2Fproject", "p"},
                                   {"Impersonate-Extra-100%", "odd"}}),
            "bob [system:authenticated] uid=u-1 100%=odd acme.com/project=p scopes=view+edit");
}

TEST(Impersonation, NeedsARightForEachPart) {
  const Identity ann{.user = "ann"};
  EXPECT_EQ(become(ann, {{"Impersonate-User", "bob"},
                         {"Impersonate-Group", "team"},
                         {"Impersonate-Uid", "u-1"},
                         {"Impersonate-Extra-Scopes", "view"}}),
            "bob [team,system:authenticated] uid=u-1 scopes=view");
  EXPECT_EQ(become(ann, {{"Impersonate-User", "cat"}}),
            R"(users "cat" is forbidden: User "ann" cannot impersonate resource "users" in API )"
            R"(group "" at the cluster scope)");
  EXPECT_EQ(become(ann, {{"Impersonate-User", "bob"}, {"Impersonate-Group", "system:masters"}}),
            R"(groups "system:masters" is forbidden: User "ann" cannot impersonate resource )"
            R"("groups" in API group "" at the cluster scope)");
  EXPECT_EQ(become(ann, {{"Impersonate-User", "bob"}, {"Impersonate-Uid", "u-2"}}),
            R"(uids.authentication.k8s.io "u-2" is forbidden: User "ann" cannot impersonate )"
            R"(resource "uids" in API group "authentication.k8s.io" at the cluster scope)");
  EXPECT_EQ(
      become(ann, {{"Impersonate-User", "bob"}, {"Impersonate-Extra-Scopes", "edit"}}),
      R"(userextras.authentication.k8s.io "edit" is forbidden: User "ann" cannot impersonate )"
      R"(resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope)");
}

TEST(Impersonation, OfServiceAccountsIsARightInTheirNamespace) {
  const Identity ann{.user = "ann"};
  EXPECT_TRUE(
      impersonate(impersonators(), ann, {{"Impersonate-User", "system:serviceaccount:ns:robot"}}));
  EXPECT_EQ(become(ann, {{"Impersonate-User", "system:serviceaccount:other:robot"}}),
            R"(serviceaccounts "robot" is forbidden: User "ann" cannot impersonate resource )"
            R"("serviceaccounts" in API group "" in the namespace "other")");
}

TEST(Impersonation, NeedsAUser) {
  const auto answer = impersonate(impersonators(), kRootIdentity,
                                  {{"Impersonate-Group", "team"}, {"Impersonate-Uid", "u"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kInternal);
  EXPECT_EQ(answer.error().message,
            "requested [{Group  team    } {UID  u  authentication.k8s.io/v1  }] without "
            "impersonating a user");
  EXPECT_EQ(become(kRootIdentity, {{"Impersonate-User", ""}}), "root [system:masters]");
}

TEST(Impersonation, OfAnOddAccountNameIsOfAUser) {
  std::string ns, name;
  EXPECT_TRUE(split_service_account("system:serviceaccount:a:b", ns, name));
  EXPECT_EQ(ns + name, "ab");
  for (const char* odd : {"system:serviceaccount:a", "system:serviceaccount:a:b:c",
                          "system:serviceaccount:A:b", "system:serviceaccount::b", "a:b"}) {
    EXPECT_FALSE(split_service_account(odd, ns, name)) << odd;
  }
}

}  // namespace
}  // namespace skiff::apiserver
