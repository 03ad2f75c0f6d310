#include "apiserver/negotiate.h"

#include <map>

#include "base/strings.h"

namespace skiff::apiserver {
namespace {

struct MediaRange {
  std::string type = {};
  std::map<std::string, std::string, std::less<>> params = {};

  std::string_view param(std::string_view name) const {
    const auto found = params.find(name);
    return found == params.end() ? std::string_view() : std::string_view(found->second);
  }
  bool json() const {
    return type == "application/json" || type == "*/*" || type == "application/*";
  }
};

MediaRange parse_range(std::string_view text) {
  MediaRange range;
  bool first = true;
  for (std::string_view part : split(text, ';')) {
    part = trim(part);
    if (first) {
      range.type = lower(part);
      first = false;
      continue;
    }
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    range.params.emplace(lower(trim(part.substr(0, equals))), trim(part.substr(equals + 1)));
  }
  return range;
}

}  // namespace

Wanted wanted_shape(std::string_view accept) {
  for (std::string_view text : split(accept, ',')) {
    const MediaRange range = parse_range(text);
    if (!range.json()) continue;
    const std::string_view as = range.param("as");
    if (as.empty()) return {};
    if (range.param("g") != "meta.k8s.io") continue;
    const std::string_view version = range.param("v");
    if (version != "v1" && version != "v1beta1") continue;
    if (as == "Table") return {.shape = Shape::kTable, .version = std::string(version)};
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
      return {.shape = Shape::kPartialMetadata, .version = std::string(version)};
    }
  }
  return {};
}

std::string wanted_discovery(std::string_view accept) {
  for (std::string_view text : split(accept, ',')) {
    const MediaRange range = parse_range(text);
    if (!range.json()) continue;
    if (range.param("as").empty()) return {};
    if (range.param("as") != "APIGroupDiscoveryList" || range.param("g") != "apidiscovery.k8s.io") {
      continue;
    }
    const std::string_view version = range.param("v");
    if (version == "v2" || version == "v2beta1") return std::string(version);
  }
  return {};
}

bool accepts_json(std::string_view accept) {
  if (trim(accept).empty()) return true;
  for (std::string_view text : split(accept, ',')) {
    if (parse_range(text).json()) return true;
  }
  return false;
}

}  // namespace skiff::apiserver
