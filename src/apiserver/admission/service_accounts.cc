// Every pod runs as a service account of its namespace and is given a token for it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "apiserver/admission/rules.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kEnforceSecrets = "kubernetes.io/enforce-mountable-secrets";
constexpr std::string_view kMirrorPod = "kubernetes.io/config.mirror";
// As the real server asks for; the odd seconds mark tokens that pods did not ask for themselves.
constexpr std::int64_t kTokenSeconds = 60 * 60 + 7;

// The real server waits a while for a controller to make a namespace's default account. Here the
// first pod that needs it makes it, in its own transaction.
Object make_default_account(const AdmissionRequest& request, const store::Key& key) {
  request.txn.put(key, json::object{{"apiVersion", "v1"},
                                    {"kind", "ServiceAccount"},
                                    {"metadata",
                                     {{"name", key.name},
                                      {"namespace", key.ns},
                                      {"uid", request.uid()},
                                      {"creationTimestamp", request.now}}}});
  return request.txn.get(key);
}

Result<Object> find_account(const AdmissionRequest& request, std::string_view name) {
  const store::Key key{
      .resource = "serviceaccounts", .ns = request.request.ns, .name = std::string(name)};
  if (const Object found = request.txn.get(key)) return found;
  if (name == "default" && request.creates()) return make_default_account(request, key);
  return std::unexpected(refused_unnamed(
      request,
      fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", key.ns,
                  name, name)));
}

json::object token_volume(const std::string& name) {
  const json::object token{
      {"serviceAccountToken", {{"expirationSeconds", kTokenSeconds}, {"path", "token"}}}};
  const json::object root{
      {"configMap",
       {{"name", "kube-root-ca.crt"},
        {"items", json::array{json::object{{"key", "ca.crt"}, {"path", "ca.crt"}}}}}}};
  const json::object field{
      {"path", "namespace"},
      {"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}}}};
  const json::object downward{{"downwardAPI", {{"items", json::array{field}}}}};
  return {{"name", name},
          {"projected", {{"defaultMode", 0644}, {"sources", json::array{token, root, downward}}}}};
}

bool mounts_token(const json::value& container) {
  return std::ranges::any_of(json::get_array(container, {"volumeMounts"}), [](const auto& mount) {
    return json::get_string(mount, {"mountPath"}) == kMountPath;
  });
}

json::array& make_array(json::object& object, std::string_view name) {
  json::value& list = object[name];
  return list.is_array() ? list.get_array() : list.emplace_array();
}

void mount_token(const AdmissionRequest& request, json::object& spec) {
  std::string volume;
  for (const json::value& v : make_array(spec, "volumes")) {
    const std::string_view name = json::get_string(v, {"name"});
    if (volume.empty() && name.starts_with(kVolumePrefix)) volume = name;
  }
  const bool present = !volume.empty();
  if (!present) volume = std::string(kVolumePrefix) + request.suffix();
  bool needed = false;
  for (std::string_view field : {"initContainers", "containers"}) {
    json::value* list = spec.if_contains(field);
    if (list == nullptr || !list->is_array()) continue;
    for (json::value& container : list->get_array()) {
      if (!container.is_object() || mounts_token(container)) continue;
      make_array(container.get_object(), "volumeMounts")
          .push_back(json::object{
              {"name", volume}, {"readOnly", true}, {"mountPath", json::string(kMountPath)}});
      needed = true;
    }
  }
  if (needed && !present) make_array(spec, "volumes").push_back(token_volume(volume));
  if (spec["volumes"].get_array().empty()) spec.erase("volumes");
}

std::set<std::string> names_in(const json::value& account, std::string_view field) {
  std::set<std::string> out;
  for (const json::value& entry : json::get_array(account, {field})) {
    out.emplace(json::get_string(entry, {"name"}));
  }
  return out;
}

// The first reference of the containers to a secret that the account does not list.
std::string foreign_secret(const json::value& spec, std::string_view field, std::string_view what,
                           const json::value& account) {
  const std::set<std::string> allowed = names_in(account, "secrets");
  const std::string_view owner = api::name(account);
  for (const json::value& container : json::get_array(spec, {field})) {
    const std::string_view name = json::get_string(container, {"name"});
    for (const json::value& variable : json::get_array(container, {"env"})) {
      const std::string secret(json::get_string(variable, {"valueFrom", "secretKeyRef", "name"}));
      if (secret.empty() || allowed.contains(secret)) continue;
      return fmt::format(
          "{} {} with envVar {} referencing secret.secretName=\"{}\" is not allowed because "
          "service "
          "account {} does not reference that secret",
          what, name, json::get_string(variable, {"name"}), secret, owner);
    }
    for (const json::value& source : json::get_array(container, {"envFrom"})) {
      const std::string secret(json::get_string(source, {"secretRef", "name"}));
      if (secret.empty() || allowed.contains(secret)) continue;
      return fmt::format(
          "{} {} with envFrom referencing secret.secretName=\"{}\" is not allowed because service "
          "account {} does not reference that secret",
          what, name, secret, owner);
    }
  }
  return {};
}

std::string foreign_reference(const json::value& spec, const json::value& account) {
  const std::set<std::string> secrets = names_in(account, "secrets");
  for (const json::value& volume : json::get_array(spec, {"volumes"})) {
    if (json::find(volume, {"secret"}) == nullptr) continue;
    const std::string secret(json::get_string(volume, {"secret", "secretName"}));
    if (secrets.contains(secret)) continue;
    return fmt::format(
        "volume with secret.secretName=\"{}\" is not allowed because service account {} does not "
        "reference that secret",
        secret, api::name(account));
  }
  for (const auto& [field, what] :
       {std::pair{"initContainers", "init container"}, {"containers", "container"}}) {
    if (std::string why = foreign_secret(spec, field, what, account); !why.empty()) return why;
  }
  const std::set<std::string> pulls = names_in(account, "imagePullSecrets");
  const json::array& references = json::get_array(spec, {"imagePullSecrets"});
  for (std::size_t i = 0; i < references.size(); ++i) {
    const std::string secret(json::get_string(references[i], {"name"}));
    if (pulls.contains(secret)) continue;
    return fmt::format(
        "imagePullSecrets[{}].name=\"{}\" is not allowed because service account {} does not "
        "reference that imagePullSecret",
        i, secret, api::name(account));
  }
  return {};
}

bool restricts_secrets(const json::value& account) {
  const std::string_view value = api::annotation(account, kEnforceSecrets);
  constexpr std::string_view kTrue[] = {"1", "t", "T", "TRUE", "true", "True"};
  return std::ranges::count(kTrue, value) > 0;
}

Result<void> check_mirror_pod(const AdmissionRequest& request) {
  const json::value& spec = request.object.at("spec");
  if (!json::get_string(spec, {"serviceAccountName"}).empty()) {
    return std::unexpected(refused(request, "a mirror pod may not reference service accounts"));
  }
  return {};
}

Result<void> check_ephemeral(const AdmissionRequest& request) {
  const json::value& spec = request.object.at("spec");
  SKIFF_ASSIGN(const Object account,
               find_account(request, json::get_string(spec, {"serviceAccountName"})));
  if (!restricts_secrets(*account)) return {};
  const std::string why =
      foreign_secret(spec, "ephemeralContainers", "ephemeral container", *account);
  if (!why.empty()) return std::unexpected(refused(request, why));
  return {};
}

}  // namespace

Result<void> use_service_account(const AdmissionRequest& request) {
  if (!request.is("pods")) return {};
  if (!request.creates()) {
    if (request.request.subresource == "ephemeralcontainers") return check_ephemeral(request);
    return {};
  }
  if (json::find(request.object, {"metadata", "annotations", kMirrorPod}) != nullptr) {
    return check_mirror_pod(request);
  }
  json::object& spec = json::make_object(request.object, {"spec"});
  if (json::get_string(request.object, {"spec", "serviceAccountName"}).empty()) {
    spec["serviceAccountName"] = "default";
  }
  const std::string name(json::get_string(request.object, {"spec", "serviceAccountName"}));
  spec["serviceAccount"] = name;  // the field's old name, shown beside it
  SKIFF_ASSIGN(const Object account, find_account(request, name));
  const bool mount =
      json::get_bool(request.object, {"spec", "automountServiceAccountToken"})
          .value_or(json::get_bool(*account, {"automountServiceAccountToken"}).value_or(true));
  if (mount) mount_token(request, spec);
  if (json::get_array(request.object, {"spec", "imagePullSecrets"}).empty()) {
    json::array pulls;
    for (const json::value& secret : json::get_array(*account, {"imagePullSecrets"})) {
      pulls.push_back(json::object{{"name", json::string(json::get_string(secret, {"name"}))}});
    }
    if (!pulls.empty()) spec["imagePullSecrets"] = std::move(pulls);
  }
  if (restricts_secrets(*account)) {
    const std::string why = foreign_reference(request.object.at("spec"), *account);
    if (!why.empty()) return std::unexpected(refused_unnamed(request, why));
  }
  return {};
}

}  // namespace skiff::apiserver
