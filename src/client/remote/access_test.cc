#include "client/remote/access.h"

#include <gtest/gtest.h>

#include <fstream>

#include "client/remote/credentials.h"
#include "net/pki.h"

namespace skiff::client {
namespace {

constexpr std::string_view kConfig = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: near
  cluster: {server: "https://127.0.0.1:7443", certificate-authority-data: Q0E=}
- name: far
  cluster: {server: "https://10.0.0.1", insecure-skip-tls-verify: true, tls-server-name: kubernetes,
            certificate-authority: ca.pem}
- name: proxied
  cluster: {server: "https://10.0.0.1", proxy-url: "http://proxy"}
- name: odd
  cluster: {server: "10.0.0.1"}
users:
- name: admin
  user: {client-certificate-data: Q1JU, client-key-data: S0VZ}
- name: robot
  user: {token: secret}
- name: rotated
  user: {token: old, tokenFile: token}
- name: person
  user: {username: u, password: p}
- name: cloud
  user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/aws, args: [eks]}}
- name: older
  user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}}
- name: provided
  user: {auth-provider: {name: gcp}}
- name: acting
  user: {token: t, as: jane, as-uid: "7", as-groups: [a, b]}
- name: half
  user: {client-certificate-data: Q1JU}
- name: broken
  user: {client-certificate-data: "*"}
contexts:
- name: one
  context: {cluster: near, user: admin, namespace: team}
- name: two
  context: {cluster: far, user: robot}
- name: rotated
  context: {cluster: near, user: rotated}
- name: person
  context: {cluster: near, user: person}
- name: anonymous
  context: {cluster: near}
- {name: cloud, context: {cluster: near, user: cloud}}
- {name: older, context: {cluster: near, user: older}}
- {name: provided, context: {cluster: near, user: provided}}
- {name: acting, context: {cluster: near, user: acting}}
- {name: half, context: {cluster: near, user: half}}
- {name: broken, context: {cluster: near, user: broken}}
- {name: lost, context: {cluster: nowhere, user: admin}}
- {name: nobody, context: {cluster: near, user: ghost}}
- {name: proxied, context: {cluster: proxied}}
- {name: odd, context: {cluster: odd}}
)";

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    std::filesystem::create_directory(folder_);
    put("ca.pem", "FILE CA");
    put("token", "fresh\n");
  }
  ~AccessTest() override { std::filesystem::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string authorization(const Access& access) {
    const auto auth = Credentials(access).current();
    return auth ? std::string(http::header((*auth)->headers, "Authorization")) : "unreadable";
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("skiff-access-" + net::random_token(6));
};

TEST_F(AccessTest, TakesTheCurrentContext) {
  const auto access = parse_kubeconfig(kConfig, folder_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->endpoint.host, "127.0.0.1");
  EXPECT_EQ(access->endpoint.port, 7443);
  EXPECT_TRUE(access->endpoint.tls);
  EXPECT_EQ(access->endpoint.ca_pem, "CA");
  EXPECT_EQ(access->endpoint.certificate_pem, "CRT");
  EXPECT_EQ(access->endpoint.key_pem, "KEY");
  EXPECT_EQ(access->ns, "team");
  EXPECT_EQ(authorization(*access), "");
}

TEST_F(AccessTest, TakesANamedContextAndItsFiles) {
  put("config", std::string(kConfig));
  const auto access = load_kubeconfig(folder_ / "config", "two");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->endpoint.port, 443);
  EXPECT_EQ(access->endpoint.ca_pem, "FILE CA");
  EXPECT_EQ(access->endpoint.server_name, "kubernetes");
  EXPECT_TRUE(access->endpoint.insecure);
  EXPECT_EQ(access->ns, "default");
  EXPECT_EQ(authorization(*access), "Bearer secret");
}

TEST_F(AccessTest, AuthorizesInTheWayTheUserSays) {
  EXPECT_EQ(authorization(*parse_kubeconfig(kConfig, folder_, "person")), "Basic dTpw");
  EXPECT_EQ(authorization(*parse_kubeconfig(kConfig, folder_, "anonymous")), "");
  const auto rotated = *parse_kubeconfig(kConfig, folder_, "rotated");
  EXPECT_EQ(authorization(rotated), "Bearer fresh");
  put("token", "newer");
  EXPECT_EQ(authorization(rotated), "Bearer newer");
}

TEST_F(AccessTest, FindsThePluginBesideTheKubeconfig) {
  const auto access = parse_kubeconfig(kConfig, folder_, "cloud");
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(access->exec->command, (folder_ / "./bin/aws").string());
  EXPECT_EQ(access->exec->arguments, std::vector<std::string>{"eks"});
}

TEST_F(AccessTest, ActsAsWhomTheUserSays) {
  const auto access = parse_kubeconfig(kConfig, folder_, "acting");
  ASSERT_TRUE(access) << access.error().message;
  const http::Headers expected{{"Impersonate-User", "jane"},
                               {"Impersonate-Group", "a"},
                               {"Impersonate-Group", "b"},
                               {"Impersonate-Uid", "7"}};
  EXPECT_EQ(access->impersonation(), expected);
}

TEST_F(AccessTest, MergesTheFilesOfAList) {
  std::filesystem::create_directory(folder_ / "sub");
  put("sub/ca.pem", "OTHER CA");
  put("sub/config", R"(
clusters: [{name: c, cluster: {server: "https://b", certificate-authority: ca.pem}}]
users: [{name: u, user: {token: second}}, {name: v, user: {tokenFile: ../token}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: z, context: {cluster: c, user: v}}]
current-context: x
)");
  put("first", "users: [{name: u, user: {token: first}}]\n");
  const std::string list = (folder_ / "first").string() + ":" + (folder_ / "missing").string() +
                           ":" + (folder_ / "sub/config").string();
  const auto access = load_kubeconfig(list);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->endpoint.host, "b");
  EXPECT_EQ(access->endpoint.ca_pem, "OTHER CA");
  EXPECT_EQ(access->token, "first");
  const auto other = load_kubeconfig(list, "z");
  ASSERT_TRUE(other);
  EXPECT_EQ(authorization(*other), "Bearer fresh");
  EXPECT_FALSE(load_kubeconfig((folder_ / "missing").string() + ":"));
}

TEST_F(AccessTest, SaysWhatIsWrong) {
  struct Case {
    std::string_view context, message;
  };
  const Case cases[] = {
      {"older", "v1alpha1"},
      {"provided", "auth-provider"},
      {"half", "only one of client-certificate and client-key"},
      {"broken", "client-certificate-data is not base64"},
      {"lost", "no cluster called \"nowhere\""},
      {"nobody", "no user called \"ghost\""},
      {"missing", "no context called \"missing\""},
      {"proxied", "proxy-url"},
      {"odd", "must begin with https://"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.context);
    const auto access = parse_kubeconfig(kConfig, folder_, c.context);
    ASSERT_FALSE(access);
    EXPECT_TRUE(access.error().message.contains(c.message)) << access.error().message;
  }
  EXPECT_FALSE(parse_kubeconfig("", folder_));
  EXPECT_FALSE(parse_kubeconfig("[1]", folder_));
  EXPECT_FALSE(parse_kubeconfig("a: [", folder_));
  EXPECT_TRUE(parse_kubeconfig("a: 1", folder_).error().message.contains("current-context"));
  EXPECT_TRUE(load_kubeconfig(folder_ / "none").error().message.contains("cannot read"));
}

TEST_F(AccessTest, FindsThePodsOwnFiles) {
  put("ca.crt", "POD CA");
  put("namespace", "mine\n");
  const auto access = in_cluster("fd00::1", "443", folder_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->endpoint.host, "fd00::1");
  EXPECT_EQ(access->endpoint.ca_pem, "POD CA");
  EXPECT_EQ(access->ns, "mine");
  EXPECT_EQ(authorization(*access), "Bearer fresh");
  EXPECT_TRUE(in_cluster("", "443", folder_).error().message.contains("not a pod of a cluster"));
  EXPECT_TRUE(in_cluster("h", "1", folder_ / "no").error().message.contains("cannot read"));
}

}  // namespace
}  // namespace skiff::client
