#include "assembly/credentials.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"

namespace skiff::assembly {
namespace {

using std::chrono::days;

constexpr days kAuthorityValid{3650};
constexpr days kCertificateValid{365};
constexpr days kRenewBefore{30};

bool still_good(const net::Identity& identity, Time now) {
  const auto until = net::valid_until(identity.certificate_pem);
  return until && Time(*until) > now + kRenewBefore;
}

Result<net::Identity> read_identity(const DataFolder& folder, const std::string& name) {
  net::Identity out;
  SKIFF_ASSIGN(out.certificate_pem, read_file(folder.at("pki/" + name + ".crt")));
  SKIFF_ASSIGN(out.key_pem, read_file(folder.at("pki/" + name + ".key")));
  return out;
}

Result<void> write_identity(const DataFolder& folder, const std::string& name,
                            const net::Identity& identity) {
  SKIFF_TRY(write_file(folder.at("pki/" + name + ".key"), identity.key_pem, 0600));
  return write_file(folder.at("pki/" + name + ".crt"), identity.certificate_pem, 0600);
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

net::ServerNames names_for(const std::vector<std::string>& addresses) {
  net::ServerNames names{
      .dns = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
              "kubernetes.default.svc.cluster.local", "skiff.skiff-system.svc"},
      .addresses = {"127.0.0.1", "::1"}};
  if (!host_name().empty()) names.dns.push_back(host_name());
  for (const std::string& address : addresses) {
    if (std::ranges::find(names.addresses, address) == names.addresses.end())
      names.addresses.push_back(address);
  }
  return names;
}

// The server's certificate must name every address we answer on; that list is kept beside it.
Result<net::Identity> server_identity(const DataFolder& folder, const net::Identity& authority,
                                      const std::vector<std::string>& addresses, Time now) {
  const net::ServerNames names = names_for(addresses);
  const std::string wanted = join(names.dns, ",") + ";" + join(names.addresses, ",");
  auto kept = read_identity(folder, "server");
  const auto kept_names = read_file(folder.at("pki/server.names"));
  if (kept && kept_names && *kept_names == wanted && still_good(*kept, now)) return kept;
  SKIFF_ASSIGN(net::Identity made, net::issue_server(authority, "skiff", names, kCertificateValid));
  SKIFF_TRY(write_identity(folder, "server", made));
  SKIFF_TRY(write_file(folder.at("pki/server.names"), wanted, 0600));
  return made;
}

// sa.key signs; sa.pub may hold further keys, whose tokens then stay good after a change of key. A
// key that cannot be read is not replaced: every token in use would be worth nothing.
Result<net::JwtKeys> token_keys(const DataFolder& folder) {
  const std::string private_path = folder.at("pki/sa.key"), public_path = folder.at("pki/sa.pub");
  if (access(private_path.c_str(), F_OK) != 0) {
    SKIFF_ASSIGN(const net::SigningKey made, net::make_signing_key());
    SKIFF_TRY(write_file(private_path, made.private_pem, 0600));
    SKIFF_TRY(write_file(public_path, made.public_pem, 0600));
  }
  SKIFF_ASSIGN(const std::string private_pem, read_file(private_path));
  constexpr std::string_view kEnd = "-----END PUBLIC KEY-----";
  std::vector<std::string> publics;
  std::string rest = read_file(public_path).value_or("");
  for (std::size_t at = rest.find(kEnd); at != std::string::npos; at = rest.find(kEnd)) {
    publics.push_back(rest.substr(0, at + kEnd.size()) + "\n");
    rest.erase(0, at + kEnd.size());
  }
  auto keys = net::JwtKeys::open(private_pem, publics);
  if (!keys) {
    keys.error().message =
        fmt::format("{}, {}: {}", private_path, public_path, keys.error().message);
  }
  return keys;
}

}  // namespace

apiserver::TokenCodec token_codec(std::shared_ptr<const net::JwtKeys> keys) {
  return {.sign = [keys](const json::object& claims) { return keys->sign(claims); },
          .verify = [keys](std::string_view token) { return keys->verify(token); },
          .key_set = keys->key_set(),
          .algorithms = keys->algorithms()};
}

Result<Credentials> load_or_make_credentials(const DataFolder& folder,
                                             const std::vector<std::string>& addresses, Time now) {
  mkdir(folder.at("pki").c_str(), 0700);
  Credentials out;
  auto authority = read_identity(folder, "ca");
  const bool new_authority = !authority || !still_good(*authority, now);
  if (new_authority) {
    authority = net::make_authority("skiff-ca", kAuthorityValid);
    if (!authority) return std::unexpected(authority.error());
    SKIFF_TRY(write_identity(folder, "ca", *authority));
    // What the old authority signed is worth nothing now.
    unlink(folder.at("pki/server.names").c_str());
    unlink(folder.at("pki/admin.crt").c_str());
  }
  out.authority = std::move(*authority);
  SKIFF_ASSIGN(out.server, server_identity(folder, out.authority, addresses, now));
  auto admin = read_identity(folder, "admin");
  if (!admin || !still_good(*admin, now)) {
    admin = net::issue_client(out.authority, "skiff-admin", {"system:masters"}, kCertificateValid);
    if (!admin) return std::unexpected(admin.error());
    SKIFF_TRY(write_identity(folder, "admin", *admin));
  }
  out.admin = std::move(*admin);
  if (auto token = read_file(folder.at("pki/token")); token && !trim(*token).empty()) {
    out.token = trim(*token);
  } else {
    out.token = net::random_token(24);
    SKIFF_TRY(write_file(folder.at("pki/token"), out.token + "\n", 0600));
  }
  SKIFF_ASSIGN(net::JwtKeys keys, token_keys(folder));
  out.token_keys = std::make_shared<const net::JwtKeys>(std::move(keys));
  return out;
}

std::string kubeconfig_text(const Credentials& credentials, const std::string& url) {
  return fmt::format(R"(apiVersion: v1
kind: Config
clusters:
- name: skiff
  cluster:
    server: {}
    certificate-authority-data: {}
users:
- name: skiff-admin
  user:
    client-certificate-data: {}
    client-key-data: {}
contexts:
- name: skiff
  context:
    cluster: skiff
    user: skiff-admin
    namespace: default
current-context: skiff
)",
                     url, base64::encode(credentials.authority.certificate_pem),
                     base64::encode(credentials.admin.certificate_pem),
                     base64::encode(credentials.admin.key_pem));
}

}  // namespace skiff::assembly
