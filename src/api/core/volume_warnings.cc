#include "api/core/volume_warnings.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace skiff::api {
namespace {

constexpr std::pair<std::string_view, std::string_view> kOldVolumes[] = {
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"}};

// A file of a volume, and where its content comes from.
struct File {
  std::string path;
  std::string source = {};

  bool operator==(const File&) const = default;
  std::string text() const {
    return source.empty() ? fmt::format("\"{}\"", path) : fmt::format("\"{}\" ({})", path, source);
  }
};

std::vector<File> files_of(const json::value& source, const std::string& name) {
  std::vector<File> out;
  for (const json::value& item : json::get_array(source, {"items"})) {
    out.push_back({std::string(json::get_string(item, {"path"})), name});
  }
  return out;
}

bool one_in_the_other(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (b.size() == a.size() || b[a.size()] == '/');
}

// "this with that" for each pair of which one hides the other.
std::vector<std::string> overlaps(const std::vector<File>& files) {
  std::vector<std::string> out;
  std::vector<File> before;
  for (File file : files) {
    file.path.erase(file.path.find_last_not_of('/') + 1);
    for (const File& other : before) {
      if (file.path.empty() || other.path.empty()) continue;
      if (out.size() < limits::kNamedWarnings && one_in_the_other(file.path, other.path)) {
        out.push_back(fmt::format("{} with {}", file.text(), other.text()));
      }
    }
    if (before.size() < limits::kComparedForWarnings) before.push_back(std::move(file));
  }
  return out;
}

std::vector<File> projected_files(const json::value& source) {
  const auto named = [&](std::string_view kind, std::string_view word, std::string_view key) {
    return files_of(*json::find(source, {kind}),
                    fmt::format("{} \"{}\"", word, json::get_string(source, {kind, key})));
  };
  if (json::find(source, {"configMap", "items"}) != nullptr) {
    return named("configMap", "ConfigMap", "name");
  }
  if (json::find(source, {"secret", "items"}) != nullptr) return named("secret", "Secret", "name");
  if (json::find(source, {"downwardAPI", "items"}) != nullptr) {
    return files_of(*json::find(source, {"downwardAPI"}), "DownwardAPI");
  }
  if (json::find(source, {"serviceAccountToken"}) != nullptr) {
    return {{std::string(json::get_string(source, {"serviceAccountToken", "path"})),
             "ServiceAccountToken"}};
  }
  return {};
}

}  // namespace

void warn_of_volumes(const json::array& volumes, const std::string& path,
                     std::vector<std::string>& out) {
  std::size_t i = 0;
  for (const json::value& volume : volumes) {
    for (const auto& [kind, message] : kOldVolumes) {
      if (json::find(volume, {kind}) == nullptr) continue;
      out.push_back(
          fmt::format("{}[{}].{}: {}", path, i, kind == "storageos" ? "storageOS" : kind, message));
    }
    ++i;
  }
  for (const json::value& volume : volumes) {
    const auto say = [&](const std::string& what, const std::vector<File>& files) {
      for (const std::string& pair : overlaps(files)) {
        out.push_back(fmt::format("volume \"{}\" ({}): overlapping paths: {}",
                                  json::get_string(volume, {"name"}), what, pair));
      }
    };
    if (const json::value* map = json::find(volume, {"configMap"})) {
      say(fmt::format("ConfigMap \"{}\"", json::get_string(*map, {"name"})), files_of(*map, ""));
    }
    if (const json::value* secret = json::find(volume, {"secret"})) {
      say(fmt::format("Secret \"{}\"", json::get_string(*secret, {"secretName"})),
          files_of(*secret, ""));
    }
    if (const json::value* fields = json::find(volume, {"downwardAPI"})) {
      say("DownwardAPI", files_of(*fields, ""));
    }
    std::vector<File> projected;
    for (const json::value& source : json::get_array(volume, {"projected", "sources"})) {
      if (source.is_object() && source.get_object().empty()) {
        out.push_back(fmt::format("volume \"{}\" (Projected) has no sources provided",
                                  json::get_string(volume, {"name"})));
      }
      for (File& file : projected_files(source)) projected.push_back(std::move(file));
    }
    say("Projected", projected);
  }
}

}  // namespace skiff::api
