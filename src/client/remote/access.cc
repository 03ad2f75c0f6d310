#include "client/remote/access.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "base/base64.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace skiff::client {
namespace {

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return fail(Code::kInvalid, fmt::format("cannot read {}", path.string()));
  return text;
}

// The `member` of the entry called `name` in one of kubeconfig's three lists.
Result<const json::value*> entry(const json::value& config, std::string_view list,
                                 std::string_view member, std::string_view name) {
  for (const json::value& item : json::get_array(config, {list})) {
    if (json::get_string(item, {"name"}) != name) continue;
    if (const json::value* found = json::find(item, {member})) return found;
  }
  return fail(Code::kInvalid, fmt::format("the kubeconfig has no {} called \"{}\"", member, name));
}

// KEY-data holds base64, KEY names a file; the data wins, as in kubectl.
Result<std::string> data_or_file(const json::value& from, const std::string& key,
                                 const std::filesystem::path& folder) {
  const std::string_view data = json::get_string(from, {key + "-data"});
  if (!data.empty()) {
    auto decoded = base64::decode(data);
    if (!decoded) return fail(Code::kInvalid, "the kubeconfig's " + key + "-data is not base64");
    return std::move(*decoded);
  }
  const std::string_view file = json::get_string(from, {key});
  if (file.empty()) return std::string();
  return read_file(folder / file);
}

Result<void> read_cluster(const json::value& cluster, const std::filesystem::path& folder,
                          Access& out) {
  SKIFF_ASSIGN(out.endpoint, net::parse_endpoint(json::get_string(cluster, {"server"})));
  SKIFF_ASSIGN(out.endpoint.ca_pem, data_or_file(cluster, "certificate-authority", folder));
  out.endpoint.insecure = json::get_bool(cluster, {"insecure-skip-tls-verify"}).value_or(false);
  out.endpoint.server_name = json::get_string(cluster, {"tls-server-name"});
  if (!json::get_string(cluster, {"proxy-url"}).empty()) {
    return fail(Code::kInvalid,
                "the kubeconfig asks for a proxy (proxy-url), which Skiff does not "
                "use; give an address that can be reached directly");
  }
  return {};
}

Result<void> read_user(const json::value& user, const std::filesystem::path& folder, Access& out) {
  for (const std::string_view plugin : {"exec", "auth-provider"}) {
    if (json::find(user, {plugin}) == nullptr) continue;
    return fail(
        Code::kInvalid,
        fmt::format("the kubeconfig gets its credentials from a plug-in ({}), which Skiff "
                    "does not run; use a user with a token or a client certificate, such as "
                    "one made with: kubectl create token",
                    plugin));
  }
  SKIFF_ASSIGN(out.endpoint.certificate_pem, data_or_file(user, "client-certificate", folder));
  SKIFF_ASSIGN(out.endpoint.key_pem, data_or_file(user, "client-key", folder));
  if (out.endpoint.certificate_pem.empty() != out.endpoint.key_pem.empty()) {
    return fail(Code::kInvalid,
                "the kubeconfig's user has only one of client-certificate and "
                "client-key");
  }
  out.token = json::get_string(user, {"token"});
  const std::string_view file = json::get_string(user, {"tokenFile"});
  if (!file.empty()) out.token_file = folder / file;
  out.user = json::get_string(user, {"username"});
  out.password = json::get_string(user, {"password"});
  return {};
}

}  // namespace

Result<http::Headers> Access::headers() const {
  std::string bearer = token;
  if (!token_file.empty()) {
    SKIFF_ASSIGN(const std::string text, read_file(token_file));
    bearer = trim(text);
  }
  if (!bearer.empty()) return http::Headers{{"Authorization", "Bearer " + bearer}};
  if (user.empty()) return http::Headers{};
  return http::Headers{{"Authorization", "Basic " + base64::encode(user + ":" + password)}};
}

Result<Access> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                std::string_view context) {
  SKIFF_ASSIGN(const auto documents, yaml::parse_all(text));
  if (documents.size() != 1 || !documents.front().is_object()) {
    return fail(Code::kInvalid, "a kubeconfig is one YAML document with clusters and contexts");
  }
  const json::value& config = documents.front();
  if (context.empty()) context = json::get_string(config, {"current-context"});
  if (context.empty()) {
    return fail(Code::kInvalid, "the kubeconfig has no current-context; name the context to use");
  }
  Access out;
  SKIFF_ASSIGN(const json::value* chosen, entry(config, "contexts", "context", context));
  SKIFF_ASSIGN(const json::value* cluster,
               entry(config, "clusters", "cluster", json::get_string(*chosen, {"cluster"})));
  SKIFF_TRY(read_cluster(*cluster, folder, out));
  const std::string_view user = json::get_string(*chosen, {"user"});
  if (!user.empty()) {
    SKIFF_ASSIGN(const json::value* found, entry(config, "users", "user", user));
    SKIFF_TRY(read_user(*found, folder, out));
  }
  const std::string_view ns = json::get_string(*chosen, {"namespace"});
  if (!ns.empty()) out.ns = ns;
  return out;
}

Result<Access> load_kubeconfig(const std::filesystem::path& file, std::string_view context) {
  SKIFF_ASSIGN(const std::string text, read_file(file));
  auto access = parse_kubeconfig(text, file.parent_path(), context);
  if (!access) access.error().message = file.string() + ": " + access.error().message;
  return access;
}

Result<Access> in_cluster(std::string_view host, std::string_view port,
                          const std::filesystem::path& secrets) {
  if (host.empty() || port.empty()) {
    return fail(Code::kInvalid,
                "this is not a pod of a cluster: KUBERNETES_SERVICE_HOST and "
                "KUBERNETES_SERVICE_PORT are not set; give a kubeconfig");
  }
  const bool v6 = host.contains(':');
  Access out;
  SKIFF_ASSIGN(out.endpoint, net::parse_endpoint(fmt::format("https://{}{}{}:{}", v6 ? "[" : "",
                                                             host, v6 ? "]" : "", port)));
  SKIFF_ASSIGN(out.endpoint.ca_pem, read_file(secrets / "ca.crt"));
  out.token_file = secrets / "token";
  SKIFF_TRY(out.headers());  // fails here, with the file's name, and not at the first request
  if (const auto ns = read_file(secrets / "namespace"); ns && !trim(*ns).empty())
    out.ns = trim(*ns);
  return out;
}

}  // namespace skiff::client
