#include "node/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "api/meta.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Variables as they are put together, with an index: a namespace may have thousands of services.
class Table {
 public:
  // Fails where a program could not be started with it.
  Result<void> put(std::string_view name, std::string value) {
    const std::size_t size = name.size() + value.size() + 2;  // NAME=value and the zero behind it
    written_ += size;
    if (size > limits::kArgumentBytes) {
      return fail(Code::kInvalid,
                  fmt::format("the variable \"{}\" has {} bytes, and a program can be started with "
                              "at most {} in one; use a volume for large values",
                              name.substr(0, 200), size, limits::kArgumentBytes));
    }
    const auto [at, first] = index_.try_emplace(std::string(name), list_.size());
    if (first) {
      list_.emplace_back(name, std::move(value));
      bytes_ += size;
    } else {
      std::string& old = list_[at->second].second;
      bytes_ += value.size();
      bytes_ -= old.size();
      old = std::move(value);
    }
    if (bytes_ <= limits::kArgumentsBytes && written_ <= kWritten) return {};
    return fail(
        Code::kInvalid,
        fmt::format("the environment of the container has more than {} bytes, and a program "
                    "can be started with no more; use volumes for large values, fewer "
                    "envFrom, or enableServiceLinks: false where there are many services",
                    limits::kArgumentsBytes));
  }
  const std::string* find(std::string_view name) const {
    const auto at = index_.find(std::string(name));
    return at == index_.end() ? nullptr : &list_[at->second].second;
  }
  Variables take() { return std::move(list_); }

 private:
  // With what was replaced: a pod may define one variable again and again.
  static constexpr std::size_t kWritten = 8 * limits::kArgumentsBytes;

  Variables list_ = {};
  std::unordered_map<std::string, std::size_t> index_ = {};  // places in the list
  std::size_t bytes_ = 0;
  std::size_t written_ = 0;
};

const std::string* look_up(const Variables& variables, std::string_view name) {
  for (const auto& [known, value] : variables) {
    if (known == name) return &value;
  }
  return nullptr;
}

// `find`: a variable's value by its name, or null. A variable may repeat another twice, the next
// one that twice, and so on: what grows beyond what a program can be given is refused before it is
// made.
template <class Find>
Result<std::string> expand_by(std::string_view text, Find find) {
  std::string out;
  // Behind the last ")" nothing can be a reference, and need not be searched for its end.
  const std::size_t last_end = text.rfind(')');
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (out.size() > limits::kArgumentBytes) break;
    const bool last = i + 1 == text.size();
    if (text[i] != '$' || last) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const bool opens = text[i + 1] == '(' && last_end != text.npos && i < last_end;
    const std::size_t end = opens ? text.find(')', i) : text.npos;
    if (end == text.npos) {
      out += '$';
      continue;
    }
    const std::string_view name = text.substr(i + 2, end - i - 2);
    const std::string* value = find(name);
    out += value != nullptr ? std::string_view(*value) : text.substr(i, end - i + 1);
    i = end;
  }
  if (out.size() > limits::kArgumentBytes) {
    return fail(
        Code::kInvalid,
        fmt::format("\"{}{}\" expands to more than {} bytes, and a program can be started "
                    "with no more in one argument or variable; refer to fewer variables, or "
                    "use a volume for large values",
                    text.substr(0, 40), text.size() > 40 ? "..." : "", limits::kArgumentBytes));
  }
  return out;
}

// What a program needs to reach packages and the network from this machine, and nothing else of
// the environment Skiff happens to have been started in.
bool passed_on(std::string_view name) {
  if (name.starts_with("PIP_") || name.starts_with("UV_")) return true;
  static constexpr std::string_view kProxy[] = {"http_proxy", "https_proxy", "ftp_proxy",
                                                "all_proxy", "no_proxy"};
  const std::string plain = lower(name);
  return std::find(std::begin(kProxy), std::end(kProxy), plain) != std::end(kProxy) ||
         name == "SSL_CERT_FILE" || name == "SSL_CERT_DIR" || name == "REQUESTS_CA_BUNDLE";
}

bool optional(const json::value& reference) {
  return json::get_bool(reference, {"optional"}).value_or(false);
}

std::string_view kind_word(SourceKind kind) {
  return kind == SourceKind::kConfigMap ? "configmap" : "secret";
}

// A name a program can have in its environment; Kubernetes skips the others of an envFrom.
bool usable_name(std::string_view name) {
  return !name.empty() && name.find('=') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

Result<void> add_env_from(const EnvironmentInput& input, Table& out) {
  for (const json::value& from : json::get_array(input.container, {"envFrom"})) {
    const bool map = json::find(from, {"configMapRef"}) != nullptr;
    const SourceKind kind = map ? SourceKind::kConfigMap : SourceKind::kSecret;
    const json::value* reference = json::find(from, {map ? "configMapRef" : "secretRef"});
    if (reference == nullptr) continue;
    const std::string_view name = json::get_string(*reference, {"name"});
    const Result<json::value> source = input.lookup(kind, name);
    if (!source && source.error().code == Code::kNotFound && optional(*reference)) continue;
    if (!source)
      return fail(source.error().code, fmt::format("{} \"{}\" not found", kind_word(kind), name));
    const std::string prefix(json::get_string(from, {"prefix"}));
    for (auto& [key, value] : source_entries(kind, *source)) {
      if (usable_name(key)) SKIFF_TRY(out.put(prefix + key, std::move(value)));
    }
  }
  return {};
}

// The bytes under one key; nothing where there is none.
std::optional<std::string> entry_of(SourceKind kind, const json::value& source,
                                    std::string_view key) {
  const json::value* plain = json::find(source, {"data", key});
  const json::value* binary = json::find(source, {"binaryData", key});
  if (plain != nullptr && plain->is_string()) {
    const std::string_view text = json::view(plain->get_string());
    return kind == SourceKind::kSecret ? base64::decode(text).value_or(std::string())
                                       : std::string(text);
  }
  if (binary == nullptr || !binary->is_string()) return std::nullopt;
  return base64::decode(json::view(binary->get_string())).value_or(std::string());
}

// What the env of a container takes from config maps and secrets. Each of these is read once,
// however many variables refer to it, and only the keys that they name are kept.
class KeySources {
 public:
  explicit KeySources(const EnvironmentInput& input) : input_(input) {
    for (const json::value& entry : json::get_array(input.container, {"env"})) {
      for (const auto& [field, kind] : kFields) {
        const json::value* reference = json::find(entry, {"valueFrom", field});
        if (reference == nullptr) continue;
        Source& source = sources_[{kind, std::string(json::get_string(*reference, {"name"}))}];
        source.keys.try_emplace(std::string(json::get_string(*reference, {"key"})));
      }
    }
  }

  // Nothing: the reference is optional and there is no such key.
  Result<std::optional<std::string>> value(SourceKind kind, const json::value& reference) {
    const std::string name(json::get_string(reference, {"name"}));
    const std::string key(json::get_string(reference, {"key"}));
    Source& source = sources_[{kind, name}];
    SKIFF_TRY(read(kind, name, source));
    if (source.error) {
      const bool absent = source.error->code == Code::kNotFound;
      if (absent && optional(reference)) return std::nullopt;
      if (!absent) return std::unexpected(*source.error);
      return fail(Code::kNotFound, fmt::format("{} \"{}\" not found", kind_word(kind), name));
    }
    if (const auto& found = source.keys[key]) return *found;
    if (optional(reference)) return std::nullopt;
    return fail(Code::kNotFound,
                fmt::format("couldn't find key {} in {} {}/{}", key,
                            kind == SourceKind::kConfigMap ? "ConfigMap" : "Secret",
                            api::ns(input_.pod), name));
  }

 private:
  struct Source {
    std::map<std::string, std::optional<std::string>> keys = {};  // that somebody names
    std::optional<Error> error = {};
    bool read = false;
  };
  static constexpr std::pair<std::string_view, SourceKind> kFields[] = {
      {"configMapKeyRef", SourceKind::kConfigMap}, {"secretKeyRef", SourceKind::kSecret}};

  Result<void> read(SourceKind kind, const std::string& name, Source& source) {
    if (std::exchange(source.read, true)) return {};
    const Result<json::value> object = input_.lookup(kind, name);
    if (!object) {
      source.error = object.error();
      return {};
    }
    for (auto& [key, value] : source.keys) {
      value = entry_of(kind, *object, key);
      kept_ += value ? value->size() : 0;
      if (kept_ <= limits::kArgumentsBytes) continue;
      return fail(
          Code::kInvalid,
          fmt::format("the environment of the container takes more than {} bytes from config "
                      "maps and secrets, and a program can be started with no more; use "
                      "volumes for large values",
                      limits::kArgumentsBytes));
    }
    return {};
  }

  const EnvironmentInput& input_;
  std::map<std::pair<SourceKind, std::string>, Source> sources_ = {};
  std::size_t kept_ = 0;
};

Result<std::optional<std::string>> value_from(const EnvironmentInput& input, KeySources& sources,
                                              const json::value& from) {
  if (const json::value* field = json::find(from, {"fieldRef"})) {
    SKIFF_ASSIGN(std::string value,
                 field_value(input.pod, json::get_string(*field, {"fieldPath"})));
    return value;
  }
  if (const json::value* resource = json::find(from, {"resourceFieldRef"})) {
    SKIFF_ASSIGN(std::string value, resource_value(input, input.container, *resource));
    return value;
  }
  if (const json::value* reference = json::find(from, {"configMapKeyRef"})) {
    return sources.value(SourceKind::kConfigMap, *reference);
  }
  if (const json::value* reference = json::find(from, {"secretKeyRef"})) {
    return sources.value(SourceKind::kSecret, *reference);
  }
  return fail(Code::kInvalid,
              "valueFrom has no source that Skiff knows: fieldRef, "
              "resourceFieldRef, configMapKeyRef, secretKeyRef");
}

Result<void> add_env(const EnvironmentInput& input, Table& out) {
  KeySources sources(input);
  for (const json::value& entry : json::get_array(input.container, {"env"})) {
    const std::string_view name = json::get_string(entry, {"name"});
    if (!usable_name(name)) continue;
    if (const json::value* from = json::find(entry, {"valueFrom"})) {
      SKIFF_ASSIGN(std::optional<std::string> value, value_from(input, sources, *from));
      if (value) SKIFF_TRY(out.put(name, std::move(*value)));
      continue;
    }
    SKIFF_ASSIGN(std::string value,
                 expand_by(json::get_string(entry, {"value"}),
                           [&out](std::string_view known) { return out.find(known); }));
    SKIFF_TRY(out.put(name, std::move(value)));
  }
  return {};
}

Result<Table> base_variables(const EnvironmentInput& input) {
  Table out;
  const auto from_machine = [&](std::string_view name, std::string_view fallback) {
    const std::string* value = look_up(input.machine, name);
    return out.put(name, input.host_image && value != nullptr ? *value : std::string(fallback));
  };
  SKIFF_TRY(from_machine("PATH", kPath));
  SKIFF_TRY(from_machine("HOME", "/root"));
  SKIFF_TRY(from_machine("LANG", "C.UTF-8"));
  for (const auto& [name, value] : input.machine) {
    if (passed_on(name)) SKIFF_TRY(out.put(name, value));
  }
  std::string_view hostname = json::get_string(input.pod, {"spec", "hostname"});
  SKIFF_TRY(out.put("HOSTNAME", std::string(hostname.empty() ? api::name(input.pod) : hostname)));
  if (!input.api_host.empty()) {
    SKIFF_TRY(out.put("KUBERNETES_SERVICE_HOST", input.api_host));
    SKIFF_TRY(out.put("KUBERNETES_SERVICE_PORT", std::to_string(input.api_port)));
    SKIFF_TRY(out.put("KUBERNETES_SERVICE_PORT_HTTPS", std::to_string(input.api_port)));
  }
  for (const auto& [name, value] : input.image) SKIFF_TRY(out.put(name, value));
  for (const auto& [name, value] : input.services) SKIFF_TRY(out.put(name, value));
  for (const auto& [name, value] : input.devices) SKIFF_TRY(out.put(name, value));
  if (!input.venv.empty()) {
    SKIFF_TRY(out.put("VIRTUAL_ENV", input.venv));
    SKIFF_TRY(out.put("PATH", input.venv + "/bin:" + *out.find("PATH")));
  }
  return out;
}

// metadata.labels['key'] -> key; empty where `path` does not have this form.
std::string_view subscript(std::string_view path, std::string_view map) {
  if (!path.starts_with(map)) return {};
  path.remove_prefix(map.size());
  if (path.size() < 5 || !path.starts_with("['") || !path.ends_with("']")) return {};
  return path.substr(2, path.size() - 4);
}

// key="value" lines, as the downward API writes a whole map into a file.
std::string map_lines(const json::object& map) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : map) {
    if (!value.is_string()) continue;
    lines.push_back(fmt::format("{}={}", std::string_view(key), json::serialize(value)));
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

std::string address_list(const json::value& pod, std::string_view list, std::string_view single) {
  std::vector<std::string> out;
  for (const json::value& entry : json::get_array(pod, {"status", list})) {
    out.emplace_back(json::get_string(entry, {"ip"}));
  }
  if (out.empty()) out.emplace_back(json::get_string(pod, {"status", single}));
  return join(out, ",");
}

}  // namespace

Result<std::string> expand(std::string_view text, const Variables& variables) {
  return expand_by(text, [&](std::string_view name) { return look_up(variables, name); });
}

Result<std::vector<std::string>> expand_all(const json::array& texts, const Variables& variables) {
  std::unordered_map<std::string_view, const std::string*> index;
  for (const auto& [name, value] : variables) index.emplace(name, &value);
  std::vector<std::string> out;
  std::size_t bytes = 0;
  for (const json::value& text : texts) {
    if (!text.is_string()) continue;
    SKIFF_ASSIGN(std::string argument,
                 expand_by(json::view(text.get_string()), [&](std::string_view name) {
                   const auto at = index.find(name);
                   return at == index.end() ? nullptr : at->second;
                 }));
    bytes += argument.size() + 1;
    if (bytes > limits::kArgumentsBytes) {
      return fail(Code::kInvalid,
                  fmt::format("command and args expand to more than {} bytes, and a program can be "
                              "started with no more; use a volume for large values",
                              limits::kArgumentsBytes));
    }
    out.push_back(std::move(argument));
  }
  return out;
}

Result<std::string> field_value(const json::value& pod, std::string_view path) {
  if (const auto key = subscript(path, "metadata.labels"); !key.empty()) {
    return std::string(api::label(pod, key));
  }
  if (const auto key = subscript(path, "metadata.annotations"); !key.empty()) {
    return std::string(api::annotation(pod, key));
  }
  if (path == "metadata.labels") return map_lines(json::get_object(pod, {"metadata", "labels"}));
  if (path == "metadata.annotations") {
    return map_lines(json::get_object(pod, {"metadata", "annotations"}));
  }
  if (path == "status.podIPs") return address_list(pod, "podIPs", "podIP");
  if (path == "status.hostIPs") return address_list(pod, "hostIPs", "hostIP");
  static constexpr std::string_view kPlain[] = {
      "metadata.name", "metadata.namespace",      "metadata.uid", "spec.nodeName",
      "status.podIP",  "spec.serviceAccountName", "status.hostIP"};
  if (std::find(std::begin(kPlain), std::end(kPlain), path) == std::end(kPlain)) {
    return fail(Code::kInvalid, fmt::format("fieldPath \"{}\" is not supported", path));
  }
  const auto parts = split(path, '.');
  return std::string(json::get_string(pod, {parts[0], parts[1]}));
}

Result<std::string> resource_value(const EnvironmentInput& input, const json::value& container,
                                   const json::value& reference) {
  const std::string_view name = json::get_string(reference, {"resource"});
  const std::size_t dot = name.find('.');
  const std::string_view list = name.substr(0, dot);
  const std::string_view resource = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  if ((list != "limits" && list != "requests") || resource.empty()) {
    return fail(Code::kInvalid, fmt::format("resource \"{}\" is not supported", name));
  }
  std::optional<std::int64_t> milli;
  const auto milli_quantity = [](const json::value& text) -> std::optional<std::int64_t> {
    const Result<Quantity> quantity = Quantity::from_json(text);
    return quantity ? std::optional(quantity->milli()) : std::nullopt;
  };
  if (const json::value* q = json::find(container, {"resources", list, resource})) {
    milli = milli_quantity(*q);
  } else if (const json::value* limit = json::find(container, {"resources", "limits", resource})) {
    milli = milli_quantity(*limit);
  } else if (list == "limits" && resource == "cpu") {
    milli = input.node_cpu_milli;
  } else if (list == "limits" && resource == "memory") {
    milli = input.node_memory_bytes * 1000;
  }
  std::int64_t divisor = 1000;
  if (const json::value* d = json::find(reference, {"divisor"})) {
    divisor = milli_quantity(*d).value_or(1000);
  }
  if (divisor <= 0) divisor = 1000;  // "0" is how an unset divisor is written
  const std::int64_t value = milli.value_or(0);
  return std::to_string(value / divisor + (value % divisor > 0 ? 1 : 0));
}

std::vector<std::pair<std::string, std::string>> source_entries(SourceKind kind,
                                                                const json::value& source) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : json::get_object(source, {"data"})) {
    if (!value.is_string()) continue;
    const std::string_view text = json::view(value.get_string());
    out.emplace_back(std::string(key), kind == SourceKind::kSecret
                                           ? base64::decode(text).value_or(std::string())
                                           : std::string(text));
  }
  for (const auto& [key, value] : json::get_object(source, {"binaryData"})) {
    if (value.is_string()) {
      out.emplace_back(std::string(key),
                       base64::decode(json::view(value.get_string())).value_or(std::string()));
    }
  }
  return out;
}

Result<Variables> build_environment(const EnvironmentInput& input) {
  SKIFF_ASSIGN(Table out, base_variables(input));
  SKIFF_TRY(add_env_from(input, out));
  SKIFF_TRY(add_env(input, out));
  return out.take();
}

}  // namespace skiff::node
