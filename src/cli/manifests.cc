#include "cli/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "api/meta.h"
#include "base/yaml.h"

namespace skiff::cli {
namespace {

Result<std::string> read_manifest_text(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path);
  if (!file) return fail(Code::kNotFound, fmt::format("cannot read {}: no such file", path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<void> append_file(const std::string& path, std::vector<json::value>& out) {
  SKIFF_ASSIGN(const std::string text, read_manifest_text(path));
  auto documents = yaml::parse_all(text);
  if (!documents) {
    return fail(Code::kBadRequest, fmt::format("{}: {}", path, documents.error().message));
  }
  for (json::value& document : *documents) {
    if (!document.is_object() || api::kind(document).empty() ||
        api::api_version(document).empty()) {
      return fail(Code::kBadRequest,
                  fmt::format("{}: not a Kubernetes object: it needs apiVersion and kind", path));
    }
    if (api::kind(document) == "List") {
      for (const json::value& item : json::get_array(document, {"items"})) out.push_back(item);
    } else {
      out.push_back(std::move(document));
    }
  }
  return {};
}

// What `before` has and `after` has not becomes null; what differs from `live` is set.
json::object diff(const json::object* before, const json::object& live, const json::object& after) {
  json::object patch;
  for (const auto& [key, wanted] : after) {
    const json::value* now = live.if_contains(key);
    if (now != nullptr && now->is_object() && wanted.is_object()) {
      const json::value* was = before == nullptr ? nullptr : before->if_contains(key);
      json::object inner =
          diff(was == nullptr ? nullptr : was->if_object(), now->get_object(), wanted.get_object());
      if (!inner.empty()) patch[key] = std::move(inner);
    } else if (now == nullptr || *now != wanted) {
      patch[key] = wanted;
    }
  }
  if (before == nullptr) return patch;
  for (const auto& [key, was] : *before) {
    if (!after.contains(key) && live.contains(key)) patch[key] = nullptr;
  }
  return patch;
}

}  // namespace

Result<std::vector<json::value>> read_manifests(const std::string& path) {
  std::vector<json::value> out;
  if (path != "-" && std::filesystem::is_directory(path)) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string ending = entry.path().extension();
      if (ending == ".yaml" || ending == ".yml" || ending == ".json") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const std::string& file : files) SKIFF_TRY(append_file(file, out));
  } else {
    SKIFF_TRY(append_file(path, out));
  }
  if (out.empty()) return fail(Code::kBadRequest, fmt::format("{}: no objects in it", path));
  return out;
}

json::value with_last_applied(const json::value& manifest) {
  json::value out = manifest;
  json::value bare = manifest;
  json::make_object(bare, {"metadata", "annotations"}).erase(kLastApplied);
  json::make_object(out, {"metadata", "annotations"})[kLastApplied] = json::serialize(bare) + "\n";
  return out;
}

json::object three_way_patch(const json::value& live, const json::value& manifest) {
  const json::value wanted = with_last_applied(manifest);
  const std::string_view text = api::annotation(live, kLastApplied);
  json::value last;
  if (!text.empty()) {
    if (auto parsed = json::parse(text)) last = std::move(*parsed);
  }
  const json::object* before = last.if_object();
  json::object patch = diff(before, live.as_object(), wanted.as_object());
  patch.erase("status");  // the controllers' own
  return patch;
}

}  // namespace skiff::cli
