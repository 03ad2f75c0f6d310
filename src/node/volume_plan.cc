// What each volume of a pod is to hold. Pure; volumes.cc writes it.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "api/core/claims.h"
#include "api/meta.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "node/security.h"
#include "node/volumes.h"

namespace skiff::node {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

int mode_of(const json::value& source, std::string_view field, int fallback) {
  const auto mode = json::get_int(source, {field});
  return mode ? static_cast<int>(*mode & 0777) : fallback;
}

Result<void> check_file_bytes(std::size_t bytes) {
  if (bytes <= limits::kVolumeFileBytes) return {};
  return fail(Code::kInvalid,
              fmt::format("the files of the pod's volumes have more than {} bytes; use fewer items "
                          "of config maps and secrets, or a persistentVolumeClaim",
                          limits::kVolumeFileBytes));
}

Result<void> add_file(Volume& volume, VolumeFile file) {
  if (!stays_inside(file.path) || file.path.starts_with("..")) {
    return fail(Code::kInvalid, fmt::format("volume \"{}\": path \"{}\" would leave the volume",
                                            volume.name, file.path));
  }
  volume.file_bytes += file.path.size() + file.data.size();
  SKIFF_TRY(check_file_bytes(volume.file_bytes));
  if (volume.group) file.mode |= 0440;
  volume.files.push_back(std::move(file));
  return {};
}

// `items` chooses and renames keys; without it every key is a file.
Result<void> add_entries(Volume& volume, const json::value& source, const Entries& entries,
                         int mode, std::string_view what) {
  const json::array& items = json::get_array(source, {"items"});
  if (items.empty()) {
    for (const auto& [key, data] : entries) SKIFF_TRY(add_file(volume, {key, data, mode}));
    return {};
  }
  std::unordered_map<std::string_view, const std::string*> index;
  for (const auto& [key, data] : entries) index.emplace(key, &data);
  for (const json::value& item : items) {
    const std::string_view key = json::get_string(item, {"key"});
    const auto at = index.find(key);
    if (at == index.end()) {
      if (json::get_bool(source, {"optional"}).value_or(false)) continue;
      return fail(Code::kNotFound,
                  fmt::format("volume \"{}\": {} has no key \"{}\"", volume.name, what, key));
    }
    SKIFF_TRY(add_file(volume, {std::string(json::get_string(item, {"path"})), *at->second,
                                mode_of(item, "mode", mode)}));
  }
  return {};
}

Result<void> add_source(Volume& volume, const EnvironmentInput& input, SourceKind kind,
                        const json::value& source, int mode) {
  const bool map = kind == SourceKind::kConfigMap;
  std::string_view name = json::get_string(source, {"name"});
  if (name.empty()) name = json::get_string(source, {"secretName"});
  const Result<json::value> object = input.lookup(kind, name);
  const std::string what = fmt::format("{} \"{}\"", map ? "configmap" : "secret", name);
  if (!object) {
    const bool absent = object.error().code == Code::kNotFound;
    if (absent && json::get_bool(source, {"optional"}).value_or(false)) return {};
    if (!absent) return std::unexpected(object.error());
    return fail(Code::kNotFound, fmt::format("volume \"{}\": {} not found", volume.name, what));
  }
  return add_entries(volume, source, source_entries(kind, *object), mode, what);
}

Result<void> add_downward(Volume& volume, const EnvironmentInput& input, const json::value& source,
                          int mode) {
  for (const json::value& item : json::get_array(source, {"items"})) {
    std::string data;
    if (const json::value* field = json::find(item, {"fieldRef"})) {
      SKIFF_ASSIGN(data, field_value(input.pod, json::get_string(*field, {"fieldPath"})));
    } else if (const json::value* resource = json::find(item, {"resourceFieldRef"})) {
      const std::string_view wanted = json::get_string(*resource, {"containerName"});
      const json::value* container = nullptr;
      for (const json::value& c : json::get_array(input.pod, {"spec", "containers"})) {
        if (json::get_string(c, {"name"}) == wanted) container = &c;
      }
      if (container == nullptr) {
        return fail(Code::kInvalid,
                    fmt::format("volume \"{}\": no container \"{}\"", volume.name, wanted));
      }
      SKIFF_ASSIGN(data, resource_value(input, *container, *resource));
    }
    SKIFF_TRY(add_file(volume, {std::string(json::get_string(item, {"path"})), std::move(data),
                                mode_of(item, "mode", mode)}));
  }
  return {};
}

// Every pod has a volume with a token and the authority's certificate, asked for or not. Where this
// node can give no token, the pod runs without both.
constexpr std::string_view kRootCertificate = "kube-root-ca.crt";

Result<void> add_token(Volume& volume, const EnvironmentInput& input, const json::value& source,
                       int mode) {
  if (!input.tokens) return {};
  SKIFF_ASSIGN(
      std::string token,
      input.tokens({.ns = std::string(api::ns(input.pod)),
                    .account = std::string(
                        json::get_string(input.pod, {"spec", "serviceAccountName"}, "default")),
                    .pod = std::string(api::name(input.pod)),
                    .pod_uid = std::string(api::uid(input.pod)),
                    .audience = std::string(json::get_string(source, {"audience"})),
                    .seconds = json::get_int(source, {"expirationSeconds"}).value_or(3600)}));
  return add_file(volume,
                  {std::string(json::get_string(source, {"path"})), std::move(token), mode});
}

Result<void> add_projected(Volume& volume, const EnvironmentInput& input,
                           const json::value& projected) {
  const int mode = mode_of(projected, "defaultMode", 0644);
  for (const json::value& source : json::get_array(projected, {"sources"})) {
    if (const json::value* token = json::find(source, {"serviceAccountToken"})) {
      SKIFF_TRY(add_token(volume, input, *token, mode));
    } else if (const json::value* map = json::find(source, {"configMap"})) {
      const auto added = add_source(volume, input, SourceKind::kConfigMap, *map, mode);
      const bool certificate = json::get_string(*map, {"name"}) == kRootCertificate;
      if (!added && (input.tokens || !certificate || added.error().code != Code::kNotFound)) {
        return added;
      }
    } else if (const json::value* secret = json::find(source, {"secret"})) {
      SKIFF_TRY(add_source(volume, input, SourceKind::kSecret, *secret, mode));
    } else if (const json::value* downward = json::find(source, {"downwardAPI"})) {
      SKIFF_TRY(add_downward(volume, input, *downward, mode));
    } else {
      const json::object& object = json::get_object(source, {});
      const std::string type(object.empty() ? "empty" : std::string(object.begin()->key()));
      return fail(Code::kInvalid, fmt::format("volume \"{}\": a projected source of type {} is not "
                                              "supported; configMap, secret, downwardAPI and "
                                              "serviceAccountToken are",
                                              volume.name, type));
    }
  }
  return {};
}

std::int64_t bytes_at(const json::value& object, std::initializer_list<std::string_view> path) {
  const json::value* given = json::find(object, path);
  return given == nullptr ? 0 : Quantity::from_json(*given).value_or(Quantity()).value();
}

// As much memory as the pod may have at all, or less where the volume asks for less. 0: the
// machine's memory is not known.
std::int64_t memory_size(const EnvironmentInput& input, const json::value& empty) {
  std::int64_t bytes = input.node_memory_bytes;
  const auto at_most = [&](std::int64_t limit) {
    if (limit > 0 && (bytes == 0 || limit < bytes)) bytes = limit;
  };
  std::int64_t pod = 0;
  bool limited = true;
  for (const json::value& container : json::get_array(input.pod, {"spec", "containers"})) {
    const std::int64_t limit = bytes_at(container, {"resources", "limits", "memory"});
    limited = limited && limit > 0;
    pod += limit;
  }
  if (limited) at_most(pod);
  at_most(bytes_at(empty, {"sizeLimit"}));
  return bytes;
}

// What is behind a claim: a folder made for it, or a path of this machine that an administrator
// made a volume of.
Result<Volume> plan_claim(const EnvironmentInput& input, const api::ClaimUse& use) {
  Volume volume{.name = use.volume, .kind = VolumeKind::kHostPath, .read_only = use.read_only};
  const auto lacks = [&](Code code, std::string_view why) {
    return fail(code, fmt::format("volume \"{}\": {}", use.volume, why));
  };
  const Result<json::value> claim = input.lookup(SourceKind::kClaim, use.claim);
  if (!claim) {
    if (claim.error().code != Code::kNotFound) return std::unexpected(claim.error());
    return lacks(Code::kNotFound, fmt::format("persistentvolumeclaim \"{}\" not found", use.claim));
  }
  if (use.claim_template != nullptr && !api::controlled_by(*claim, api::uid(input.pod))) {
    return lacks(
        Code::kInvalid,
        fmt::format("persistentvolumeclaim \"{}\" was not created for this pod", use.claim));
  }
  const std::string_view name = json::get_string(*claim, {"spec", "volumeName"});
  if (!api::bound(*claim)) {
    return lacks(Code::kNotFound,
                 fmt::format("persistentvolumeclaim \"{}\" is not bound", use.claim));
  }
  const Result<json::value> found = input.lookup(SourceKind::kVolume, name);
  if (!found) {
    if (found.error().code != Code::kNotFound) return std::unexpected(found.error());
    return lacks(Code::kNotFound, fmt::format("persistentvolume \"{}\" not found", name));
  }
  if (json::get_string(*found, {"spec", "claimRef", "uid"}) != api::uid(*claim)) {
    return lacks(Code::kNotFound,
                 fmt::format("persistentvolume \"{}\" belongs to another claim", name));
  }
  if (const auto folder = claim_folder(*found, input.volumes_folder)) {
    volume.kind = VolumeKind::kClaim;
    volume.host_path = *folder;
  } else if (const json::value* host = json::find(*found, {"spec", "hostPath"})) {
    volume.host_path = json::get_string(*host, {"path"});
    volume.host_type = json::get_string(*host, {"type"});
  } else if (const json::value* local = json::find(*found, {"spec", "local"})) {
    volume.host_path = json::get_string(*local, {"path"});
    volume.host_type = "Directory";
  } else {
    return lacks(
        Code::kInvalid,
        fmt::format("persistentvolume \"{}\" is of a type that this node does not support; "
                    "hostPath and local are",
                    name));
  }
  return volume;
}

bool made_of_files(const json::value& spec) {
  for (const std::string_view type : {"configMap", "secret", "downwardAPI", "projected"}) {
    if (json::find(spec, {type}) != nullptr) return true;
  }
  return false;
}

Result<Volume> plan_volume(const EnvironmentInput& input, const json::value& spec) {
  Volume volume;
  volume.group = volume_group(input.pod);
  volume.name = json::get_string(spec, {"name"});
  if (const json::value* empty = json::find(spec, {"emptyDir"})) {
    if (json::get_string(*empty, {"medium"}) != "Memory") return volume;
    volume.kind = VolumeKind::kMemory;
    volume.memory_bytes = memory_size(input, *empty);
    return volume;
  }
  if (const json::value* host = json::find(spec, {"hostPath"})) {
    volume.kind = VolumeKind::kHostPath;
    volume.host_path = json::get_string(*host, {"path"});
    volume.host_type = json::get_string(*host, {"type"});
    return volume;
  }
  volume.kind = VolumeKind::kFiles;
  // Root rewrites what is in there, outside of the pod: nobody inside may prepare it for that.
  volume.read_only = true;
  if (const json::value* map = json::find(spec, {"configMap"})) {
    SKIFF_TRY(add_source(volume, input, SourceKind::kConfigMap, *map,
                         mode_of(*map, "defaultMode", 0644)));
    return volume;
  }
  if (const json::value* secret = json::find(spec, {"secret"})) {
    SKIFF_TRY(add_source(volume, input, SourceKind::kSecret, *secret,
                         mode_of(*secret, "defaultMode", 0644)));
    return volume;
  }
  if (const json::value* downward = json::find(spec, {"downwardAPI"})) {
    SKIFF_TRY(add_downward(volume, input, *downward, mode_of(*downward, "defaultMode", 0644)));
    return volume;
  }
  if (const json::value* projected = json::find(spec, {"projected"})) {
    SKIFF_TRY(add_projected(volume, input, *projected));
    return volume;
  }
  for (const api::ClaimUse& use : api::claims_of(input.pod)) {
    if (use.volume == volume.name) return plan_claim(input, use);
  }
  std::string type = "unknown";
  for (const auto& [key, value] : json::get_object(spec, {})) {
    if (key != "name") type = key;
  }
  return fail(
      Code::kInvalid,
      fmt::format("volume \"{}\" is of type {}, which this node does not support; emptyDir, "
                  "hostPath, configMap, secret, downwardAPI, projected, persistentVolumeClaim and "
                  "ephemeral are",
                  volume.name, type));
}

}  // namespace

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  const auto parts = split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

Result<std::vector<Volume>> plan_volumes(const EnvironmentInput& environment) {
  std::vector<Volume> out;
  std::size_t bytes = 0;
  for (const json::value& spec : json::get_array(environment.pod, {"spec", "volumes"})) {
    SKIFF_ASSIGN(Volume volume, plan_volume(environment, spec));
    SKIFF_TRY(check_file_bytes(bytes += volume.file_bytes));
    out.push_back(std::move(volume));
  }
  return out;
}

Refresh plan_refresh(const EnvironmentInput& environment) {
  Refresh out;
  std::size_t bytes = 0;
  for (const json::value& spec : json::get_array(environment.pod, {"spec", "volumes"})) {
    if (!made_of_files(spec)) continue;
    Result<Volume> volume = plan_volume(environment, spec);
    if (volume) bytes += volume->file_bytes;
    if (const auto fits = check_file_bytes(bytes); volume && !fits) {
      out.problems.push_back(fits.error().message);
      return out;
    }
    if (volume) {
      out.volumes.push_back(std::move(*volume));
    } else {
      out.problems.push_back(volume.error().message);
    }
  }
  return out;
}

std::optional<std::string> claim_folder(const json::value& volume,
                                        const std::string& volumes_folder) {
  const std::string name(api::name(volume));
  // A name of "." would be the folder of all volumes.
  if (volumes_folder.empty() || name.empty() || name.starts_with('.') || name.contains('/')) {
    return std::nullopt;
  }
  if (api::annotation(volume, api::kProvisionedBy) != api::kLocalProvisioner) return std::nullopt;
  const std::string_view path = json::get_string(volume, {"spec", "hostPath", "path"});
  if (!path.ends_with("/volumes/" + name)) return std::nullopt;
  return volumes_folder + "/" + name;
}

bool made_of(const json::value& pod, SourceKind kind, std::string_view name) {
  const bool map = kind == SourceKind::kConfigMap;
  const std::string_view field = map ? "configMap" : "secret";
  const auto refers = [&](const json::value& source, std::string_view name_field) {
    return !name.empty() && json::get_string(source, {field, name_field}) == name;
  };
  for (const json::value& volume : json::get_array(pod, {"spec", "volumes"})) {
    if (refers(volume, map ? "name" : "secretName")) return true;
    for (const json::value& source : json::get_array(volume, {"projected", "sources"})) {
      if (refers(source, "name")) return true;
    }
  }
  return false;
}

std::vector<VolumeLimit> volume_limits(const json::value& pod) {
  std::vector<VolumeLimit> out;
  for (const json::value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const json::value* limit = json::find(volume, {"emptyDir", "sizeLimit"});
    if (limit == nullptr || json::get_string(volume, {"emptyDir", "medium"}) == "Memory") continue;
    const auto amount = Quantity::from_json(*limit);
    // Zero is no limit, as for the kubelet.
    if (!amount || amount->value() <= 0) continue;
    out.push_back(
        {.volume = std::string(json::get_string(volume, {"name"})),
         .bytes = amount->value(),
         .text = limit->is_string() ? std::string(limit->get_string()) : json::serialize(*limit)});
  }
  return out;
}

}  // namespace skiff::node
