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

Result<void> read_user(const json::value& user, const json::value& cluster,
                       const std::filesystem::path& folder, Access& out) {
  if (json::find(user, {"auth-provider"}) != nullptr) {
    return fail(Code::kInvalid,
                "the kubeconfig gets its credentials from an auth-provider, which Kubernetes has "
                "given up; use an exec plug-in, a token or a client certificate, such as one made "
                "with: kubectl create token");
  }
  SKIFF_ASSIGN(out.endpoint.certificate_pem, data_or_file(user, "client-certificate", folder));
  SKIFF_ASSIGN(out.endpoint.key_pem, data_or_file(user, "client-key", folder));
  if (out.endpoint.certificate_pem.empty() != out.endpoint.key_pem.empty()) {
    return fail(Code::kInvalid,
                "the kubeconfig's user has only one of client-certificate and "
                "client-key");
  }
  if (const json::value* exec = json::find(user, {"exec"}); exec != nullptr && exec->is_object()) {
    SKIFF_ASSIGN(out.exec, parse_exec(*exec, cluster, out.endpoint.ca_pem));
    // A command with a slash is a file, relative to the kubeconfig; others are looked for in PATH.
    if (out.exec->command.contains('/')) out.exec->command = folder / out.exec->command;
  }
  out.token = json::get_string(user, {"token"});
  const std::string_view file = json::get_string(user, {"tokenFile"});
  if (!file.empty()) out.token_file = folder / file;
  out.user = json::get_string(user, {"username"});
  out.password = json::get_string(user, {"password"});
  out.as = json::get_string(user, {"as"});
  out.as_uid = json::get_string(user, {"as-uid"});
  out.as_groups = json::strings(json::get_array(user, {"as-groups"}));
  return {};
}

Result<json::value> parse_config(std::string_view text) {
  SKIFF_ASSIGN(auto documents, yaml::parse_all(text));
  if (documents.size() != 1 || !documents.front().is_object()) {
    return fail(Code::kInvalid, "a kubeconfig is one YAML document with clusters and contexts");
  }
  return std::move(documents.front());
}

void make_absolute(json::value& from, const char* key, const std::filesystem::path& folder,
                   bool programs = false) {
  json::value* file = from.is_object() ? from.as_object().if_contains(key) : nullptr;
  if (file == nullptr || !file->is_string() || file->get_string().empty()) return;
  const std::string path(json::view(file->get_string()));
  if (programs && !path.contains('/')) return;
  *file = json::string((folder / path).string());
}

// Files that the entries of one kubeconfig name are relative to it, wherever the entries go.
void make_absolute(json::value& config, const std::filesystem::path& folder) {
  const auto each = [&](const char* list, const char* member, auto&& change) {
    json::value* items = config.as_object().if_contains(list);
    if (items == nullptr || !items->is_array()) return;
    for (json::value& item : items->as_array()) {
      json::value* found = item.is_object() ? item.as_object().if_contains(member) : nullptr;
      if (found != nullptr && found->is_object()) change(*found);
    }
  };
  each("clusters", "cluster",
       [&](json::value& cluster) { make_absolute(cluster, "certificate-authority", folder); });
  each("users", "user", [&](json::value& user) {
    for (const char* key : {"client-certificate", "client-key", "tokenFile"}) {
      make_absolute(user, key, folder);
    }
    if (json::value* exec = user.as_object().if_contains("exec")) {
      make_absolute(*exec, "command", folder, true);
    }
  });
}

// Entries that `into` lacks; of two with one name the first counts.
void merge_config(json::object& into, const json::value& more) {
  for (const char* list : {"clusters", "users", "contexts"}) {
    json::value& items = into[list];
    if (!items.is_array()) items = json::array();
    for (const json::value& item : json::get_array(more, {list})) items.as_array().push_back(item);
  }
  if (json::get_string(into, {"current-context"}).empty()) {
    into["current-context"] = json::get_string(more, {"current-context"});
  }
}

Result<Access> access_of(const json::value& config, const std::filesystem::path& folder,
                         std::string_view context) {
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
    SKIFF_TRY(read_user(*found, *cluster, folder, out));
  }
  const std::string_view ns = json::get_string(*chosen, {"namespace"});
  if (!ns.empty()) out.ns = ns;
  return out;
}

}  // namespace

http::Headers Access::impersonation() const {
  http::Headers out;
  if (!as.empty()) out.emplace_back("Impersonate-User", as);
  for (const std::string& group : as_groups) out.emplace_back("Impersonate-Group", group);
  if (!as_uid.empty()) out.emplace_back("Impersonate-Uid", as_uid);
  return out;
}

Result<Access> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                std::string_view context) {
  SKIFF_ASSIGN(const json::value config, parse_config(text));
  return access_of(config, folder, context);
}

Result<Access> load_kubeconfig(const std::string& files, std::string_view context) {
  json::object merged;
  std::string read;
  for (const std::string_view name : split(files, ':')) {
    const std::filesystem::path file(name);
    std::error_code error;
    const bool skip =
        name.empty() || (files.contains(':') && !std::filesystem::exists(file, error));
    if (skip) continue;
    SKIFF_ASSIGN(const std::string text, read_file(file));
    auto config = parse_config(text);
    if (!config) {
      config.error().message = fmt::format("{}: {}", name, config.error().message);
      return std::unexpected(std::move(config).error());
    }
    make_absolute(*config, std::filesystem::absolute(file, error).parent_path());
    merge_config(merged, *config);
    read = name;
  }
  if (read.empty()) return fail(Code::kInvalid, fmt::format("no kubeconfig at {}", files));
  auto access = access_of(merged, {}, context);
  if (!access) access.error().message = files + ": " + access.error().message;
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
  SKIFF_TRY(read_file(out.token_file));  // fails here and not at the first request
  if (const auto ns = read_file(secrets / "namespace"); ns && !trim(*ns).empty())
    out.ns = trim(*ns);
  return out;
}

}  // namespace skiff::client
