#include "api/core/config.h"

#include <array>

#include "api/cells.h"
#include "base/base64.h"
#include "base/names.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

// What Kubernetes lets a ConfigMap or Secret hold in all.
constexpr std::size_t kDataBytes = 1024 * 1024;

using schema::entry;

void check_keys(const json::object& data, std::string_view path, std::vector<Cause>& out) {
  for (const auto& [key, value] : data) {
    for (const std::string& bad : names::check_config_key(key)) {
      out.push_back(schema::invalid(entry(path, std::string_view(key)), json::string(key), bad));
    }
  }
}

void check_base64(const json::object& data, std::string_view path, std::size_t& bytes,
                  std::vector<Cause>& out) {
  for (const auto& [key, value] : data) {
    const auto decoded =
        value.is_string() ? base64::decode(json::view(value.get_string())) : std::nullopt;
    if (decoded) {
      bytes += decoded->size();
    } else {
      // The value may be a secret that somebody forgot to encode: it is not repeated.
      out.push_back(schema::invalid(entry(path, std::string_view(key)), "<hidden>",
                                    "must be base64; put plain text under stringData"));
    }
  }
}

// Once `immutable` is true, neither it nor these fields change.
void check_immutable_data(const json::value& object, const Admission& context,
                          std::initializer_list<std::string_view> fields, std::vector<Cause>& out) {
  if (context.old == nullptr || !json::get_bool(*context.old, {"immutable"}).value_or(false)) {
    return;
  }
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!json::get_bool(object, {"immutable"}).value_or(false)) {
    out.push_back(schema::forbidden("immutable", kWhy));
  }
  for (const std::string_view field : fields) {
    if (json::get_object(object, {field}) != json::get_object(*context.old, {field})) {
      out.push_back(schema::forbidden(std::string(field), kWhy));
    }
  }
}

std::vector<Cause> validate_config_map(const json::value& object, const Admission& context) {
  std::vector<Cause> out;
  const json::object& data = json::get_object(object, {"data"});
  const json::object& binary = json::get_object(object, {"binaryData"});
  std::size_t bytes = 0;
  check_keys(data, "data", out);
  check_keys(binary, "binaryData", out);
  check_base64(binary, "binaryData", bytes, out);
  for (const auto& [key, value] : data) {
    bytes += value.is_string() ? value.get_string().size() : 0;
    if (binary.contains(key)) {
      out.push_back(schema::invalid(entry("data", std::string_view(key)), json::string(key),
                                    "duplicate of key present in binaryData"));
    }
  }
  if (bytes > kDataBytes) out.push_back(schema::too_long("[]", kDataBytes));
  check_immutable_data(object, context, {"data", "binaryData"}, out);
  return out;
}

json::array config_map_cells(const json::value& object, std::int64_t now_s) {
  return {
      json::get_object(object, {"data"}).size() + json::get_object(object, {"binaryData"}).size(),
      json::string(age_cell(object, now_s))};
}

void default_secret(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  if (json::get_string(object, {"type"}).empty()) (*root)["type"] = "Opaque";
  json::value* plain = root->if_contains("stringData");
  if (plain == nullptr || !plain->is_object()) return;
  // Plain text is for writing only: it becomes data, and wins over it.
  const json::object texts = plain->get_object();
  for (const auto& [key, value] : texts) {
    if (!value.is_string()) return;
  }
  json::object& data = json::make_object(object, {"data"});
  for (const auto& [key, value] : texts) {
    data[key] = base64::encode(json::view(value.get_string()));
  }
  root->erase("stringData");
}

struct SecretType {
  std::string_view type;
  std::string_view key;
  std::string_view other = {};
};

constexpr std::array kSecretTypes{
    SecretType{"kubernetes.io/tls", "tls.crt", "tls.key"},
    SecretType{"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
    SecretType{"kubernetes.io/dockercfg", ".dockercfg"},
    SecretType{"kubernetes.io/ssh-auth", "ssh-privatekey"},
};

std::vector<Cause> validate_secret(const json::value& object, const Admission& context) {
  std::vector<Cause> out;
  const json::object& data = json::get_object(object, {"data"});
  std::size_t bytes = 0;
  check_keys(data, "data", out);
  check_base64(data, "data", bytes, out);
  if (bytes > kDataBytes) out.push_back(schema::too_long("data", kDataBytes));
  const std::string_view type = json::get_string(object, {"type"});
  for (const SecretType& rule : kSecretTypes) {
    if (rule.type != type) continue;
    for (const std::string_view key : {rule.key, rule.other}) {
      if (!key.empty() && !data.contains(key)) out.push_back(schema::required(entry("data", key)));
    }
  }
  if (context.old != nullptr && json::get_string(*context.old, {"type"}) != type) {
    out.push_back(schema::invalid("type", json::string(type), "field is immutable"));
  }
  check_immutable_data(object, context, {"data"}, out);
  return out;
}

json::array secret_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(json::get_string(object, {"type"})),
          json::get_object(object, {"data"}).size(), json::string(age_cell(object, now_s))};
}

}  // namespace

Kind config_map_kind() {
  return {.resource = {"", "v1", "configmaps", "ConfigMap", true},
          .singular = "configmap",
          .short_names = {"cm"},
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.ConfigMap",
          .columns = {{"Data", "string"}, {"Age", "string"}},
          .validate = validate_config_map,
          .cells = config_map_cells};
}

Kind secret_kind() {
  return {.resource = {"", "v1", "secrets", "Secret", true},
          .singular = "secret",
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.Secret",
          .columns = {{"Type", "string"}, {"Data", "string"}, {"Age", "string"}},
          .selectable = {"type"},
          .set_defaults = default_secret,
          .validate = validate_secret,
          .cells = secret_cells};
}

}  // namespace skiff::api
