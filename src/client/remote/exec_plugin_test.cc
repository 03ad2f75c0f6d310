#include "client/remote/exec_plugin.h"

#include <gtest/gtest.h>

#include "base/yaml.h"

namespace skiff::client {
namespace {

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";

json::value doc(std::string_view text) { return yaml::parse(text).value(); }

ExecPlugin shell(std::string script) {
  return {.api_version = std::string(kV1),
          .command = "sh",
          .arguments = {"-c", std::move(script)},
          .interactive = Interactive::kNever};
}

TEST(ExecPlugin, IsReadFromTheKubeconfig) {
  const auto plugin = parse_exec(doc(R"(
apiVersion: client.authentication.k8s.io/v1
command: aws
args: [eks, get-token]
env: [{name: PROFILE, value: me}]
interactiveMode: Never
installHint: pip install it
provideClusterInfo: true
)"),
                                 doc(R"(
server: https://c
tls-server-name: kubernetes
extensions:
- {name: other, extension: {a: 1}}
- {name: client.authentication.k8s.io/exec, extension: {audience: x}}
)"),
                                 "PEM");
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_EQ(plugin->arguments, (std::vector<std::string>{"eks", "get-token"}));
  EXPECT_EQ(plugin->environment.front().second, "me");
  EXPECT_EQ(plugin->interactive, Interactive::kNever);
  EXPECT_EQ(exec_info(*plugin, false),
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
            R"("spec":{"interactive":false,"cluster":{"server":"https://c",)"
            R"("tls-server-name":"kubernetes","certificate-authority-data":"UEVN",)"
            R"("config":{"audience":"x"}}}})");
}

TEST(ExecPlugin, IsToldNothingOfTheClusterUnlessItAsks) {
  const auto plugin =
      parse_exec(doc("{apiVersion: client.authentication.k8s.io/v1beta1, command: c}"),
                 doc("{server: https://c}"), "");
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_EQ(plugin->interactive, Interactive::kIfAvailable);
  EXPECT_EQ(exec_info(*plugin, true),
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1",)"
            R"("spec":{"interactive":true}})");
}

TEST(ExecPlugin, IsRefusedWhereItsEntryIsWrong) {
  struct Case {
    std::string_view text, message;
  };
  const Case cases[] = {
      {"{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "no command"},
      {"{command: c}", "apiVersion"},
      {"{apiVersion: client.authentication.k8s.io/v1alpha1, command: c}", "v1alpha1"},
      {"{apiVersion: client.authentication.k8s.io/v1, command: c}", "must say interactiveMode"},
      {"{apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Maybe}",
       "Maybe"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto plugin = parse_exec(doc(c.text), json::object{}, "");
    ASSERT_FALSE(plugin);
    EXPECT_TRUE(plugin.error().message.contains(c.message)) << plugin.error().message;
  }
}

TEST(ExecCredential, IsATokenOrACertificate) {
  const auto token = parse_exec_credential(
      shell(""), R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
      "status":{"token":"t","expirationTimestamp":"2030-01-02T03:04:05Z"}})");
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_EQ(token->token, "t");
  EXPECT_EQ(rfc3339(*token->expires), "2030-01-02T03:04:05Z");
  const auto certificate = parse_exec_credential(
      shell(""), R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
      "status":{"clientCertificateData":"C","clientKeyData":"K"}})");
  ASSERT_TRUE(certificate) << certificate.error().message;
  EXPECT_EQ(certificate->certificate_pem + certificate->key_pem, "CK");
  EXPECT_FALSE(certificate->expires);
}

TEST(ExecCredential, IsRefusedWhereItIsNone) {
  struct Case {
    std::string_view output, message;
  };
  const Case cases[] = {
      {"hello", "no JSON"},
      {"{}", "something else"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
       "v1beta1"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})", "neither"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
       "status":{"clientKeyData":"K"}})",
       "only one"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
       "status":{"token":"t","expirationTimestamp":"soon"}})",
       "soon"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.output);
    const auto credential = parse_exec_credential(shell(""), c.output);
    ASSERT_FALSE(credential);
    EXPECT_TRUE(credential.error().message.contains(c.message)) << credential.error().message;
  }
}

TEST(ExecPlugin, RunsWithWhatItNeedsToKnow) {
  ExecPlugin plugin = shell(
      R"(test -n "$KUBERNETES_EXEC_INFO" && printf '{"kind":"ExecCredential",
      "apiVersion":"client.authentication.k8s.io/v1","status":{"token":"for-%s"}}' "$WHO")");
  plugin.environment = {{"WHO", "me"}};
  const auto credential = run_exec(plugin);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->token, "for-me");
}

TEST(ExecPlugin, ThatFailsSaysSo) {
  EXPECT_TRUE(run_exec(shell("exit 4")).error().message.contains("exit code 4"));
  ExecPlugin missing = shell("");
  missing.command = "no-such-plugin-anywhere";
  missing.install_hint = "get it at the shop";
  const auto error = run_exec(missing).error();
  EXPECT_TRUE(error.message.contains("not installed: get it at the shop")) << error.message;
  EXPECT_EQ(error.code, Code::kUnauthorized);
}

}  // namespace
}  // namespace skiff::client
