#include "net/pki.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "net/client.h"
#include "net/server.h"

namespace skiff::net {
namespace {

using namespace std::chrono_literals;

struct Authority {
  Identity ca = *make_authority("skiff test authority", std::chrono::days(3650));
  Identity server = *issue_server(
      ca, "skiff",
      {.dns = {"localhost", "kubernetes.default.svc"}, .addresses = {"127.0.0.1", "::1"}},
      std::chrono::days(365));
};

http::Response who(const http::Request& request) {
  std::string body = request.peer.common_name;
  for (const std::string& organization : request.peer.organizations) body += "," + organization;
  return {.body = body.empty() ? "nobody" : body};
}

std::unique_ptr<Server> serve_tls(const Authority& made) {
  auto server = Server::start({.listeners = {{.tls = true}},
                               .certificate_pem = made.server.certificate_pem,
                               .key_pem = made.server.key_pem,
                               .client_ca_pem = made.ca.certificate_pem},
                              who);
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

TEST(Pki, ClientsAreWhoTheirCertificateSays) {
  const Authority made;
  const Authority other;
  const auto server = serve_tls(made);
  const auto admin =
      *issue_client(made.ca, "admin, jr", {"system:masters", "people"}, std::chrono::days(1));
  const auto stranger = *issue_client(other.ca, "admin", {"system:masters"}, std::chrono::days(1));
  const auto expired = *issue_client(made.ca, "late", {}, std::chrono::days(-1));
  struct Case {
    std::string_view name;
    Identity identity;
    std::string_view body;
  };
  const Case cases[] = {
      {"none", {}, "nobody"},
      {"one of ours", admin, "admin, jr,system:masters,people"},
      {"signed by another authority of the same name", stranger, "nobody"},
      {"expired", expired, "nobody"},
      {"a server's certificate is not a client's", made.server, "nobody"},
  };
  Client client;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto answer = client.send({.host = "127.0.0.1",
                                     .port = server->port(0),
                                     .tls = true,
                                     .ca_pem = made.ca.certificate_pem,
                                     .certificate_pem = c.identity.certificate_pem,
                                     .key_pem = c.identity.key_pem},
                                    {});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, c.body);
  }
}

TEST(Pki, ASiblingTrustsTheSameServersAsItsClient) {
  const Authority made;
  const auto server = serve_tls(made);
  const Endpoint endpoint{.port = server->port(0), .tls = true, .ca_pem = made.ca.certificate_pem};
  Endpoint stranger = endpoint;
  stranger.ca_pem = Authority().ca.certificate_pem;
  std::shared_ptr<Client> sibling;
  {
    Client client;
    ASSERT_TRUE(client.send(endpoint, {}));
    sibling = client.sibling();
  }
  EXPECT_TRUE(sibling->send(endpoint, {}));
  EXPECT_FALSE(sibling->send(stranger, {}));
}

TEST(Pki, ServersAreTrustedOnlyUnderTheirNames) {
  const Authority made;
  const Authority other;
  const auto server = serve_tls(made);
  struct Case {
    std::string_view name;
    Endpoint endpoint;
    std::string_view error;  // empty: trusted
  };
  const std::string& ca = made.ca.certificate_pem;
  const Case cases[] = {
      {"by its address", {.ca_pem = ca}, ""},
      {"by a name", {.ca_pem = ca, .server_name = "kubernetes.default.svc"}, ""},
      {"by a name it does not have", {.ca_pem = ca, .server_name = "example.org"}, "mismatch"},
      {"by an address it does not have", {.ca_pem = ca, .server_name = "127.0.0.9"}, "mismatch"},
      {"another authority", {.ca_pem = other.ca.certificate_pem}, "cannot be trusted"},
      {"another authority, unchecked", {.ca_pem = other.ca.certificate_pem, .insecure = true}, ""},
  };
  Client client;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Endpoint endpoint = c.endpoint;
    endpoint.port = server->port(0);
    endpoint.tls = true;
    const auto answer = client.send(endpoint, {});
    EXPECT_EQ(answer.has_value(), c.error.empty());
    if (!answer) EXPECT_TRUE(answer.error().message.contains(c.error)) << answer.error().message;
  }
}

std::string write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

int run(std::vector<std::string> arguments) {
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(raw[0], raw.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Pki, OtherProgramsAcceptTheChainUnderStrictRules) {
  const Authority made;
  const auto server = serve_tls(made);
  const auto client = *issue_client(made.ca, "admin", {"system:masters"}, std::chrono::days(1));
  const auto folder = std::filesystem::temp_directory_path() / ("skiff-pki-" + random_token(6));
  std::filesystem::create_directory(folder);
  const std::string ca = write_file(folder / "ca", made.ca.certificate_pem);
  const std::string certificate = write_file(folder / "crt", client.certificate_pem);
  const std::string key = write_file(folder / "key", client.key_pem);
  const std::string port = std::to_string(server->port(0));
  constexpr std::string_view kScript = R"(
import http.client, ssl, sys
ca, crt, key, port = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.load_cert_chain(crt, key)
context.set_alpn_protocols(["h2", "http/1.1"])
for host in ("127.0.0.1", "localhost"):
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    for _ in range(2):
        connection.request("GET", "/")
        answer = connection.getresponse().read()
        assert answer == b"admin,system:masters", answer
    assert connection.sock.selected_alpn_protocol() == "http/1.1"
    assert connection.sock.version() == "TLSv1.3"
)";
  EXPECT_EQ(run({"python3", "-c", std::string(kScript), ca, certificate, key, port}), 0);
  EXPECT_EQ(run({"curl", "-sSf", "-o", "/dev/null", "--tls-max", "1.2", "--cacert", ca, "--cert",
                 certificate, "--key", key, "https://localhost:" + port}),
            0);
  EXPECT_NE(run({"curl", "-sf", "-o", "/dev/null", "--tlsv1.0", "--tls-max", "1.1", "--cacert", ca,
                 "https://localhost:" + port}),
            0);
  std::filesystem::remove_all(folder);
}

TEST(Pki, TellsWhenACertificateEnds) {
  const auto ca = *make_authority("a", std::chrono::days(10));
  const auto end = valid_until(ca.certificate_pem);
  ASSERT_TRUE(end);
  const auto expected = std::chrono::system_clock::now() + std::chrono::days(10);
  EXPECT_LT(std::chrono::abs(*end - expected), 1min);
  EXPECT_FALSE(valid_until("no certificate"));
}

TEST(Pki, RefusesNamesThatAreNotAddresses) {
  const auto ca = *make_authority("a", std::chrono::days(10));
  EXPECT_FALSE(issue_server(ca, "s", {.addresses = {"localhost"}}, std::chrono::days(1)));
  EXPECT_FALSE(
      issue_server({.certificate_pem = ca.certificate_pem}, "s", {}, std::chrono::days(1)));
}

TEST(Pki, TokensAndDigests) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_token(16));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 32U);
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace skiff::net
