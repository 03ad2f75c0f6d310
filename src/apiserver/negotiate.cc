#include "apiserver/negotiate.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kYamlType = "application/yaml";
constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

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
  const std::string_view q = range.param("q");
  std::from_chars(q.data(), q.data() + q.size(), range.quality);
  return range;
}

// 0: a type; 1: a whole family; 2: everything.
int vagueness(const MediaRange& range) {
  if (range.type == "*/*") return 2;
  return range.type.ends_with("/*") ? 1 : 0;
}

bool read_shape(const MediaRange& range, Wanted& out) {
  const std::string_view as = range.param("as");
  if (as.empty()) return true;
  const std::string_view version = range.param("v");
  if (range.param("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) return false;
  out.version = version;
  if (as == "Table") out.shape = Shape::kTable;
  if (as == "PartialObjectMetadata") out.shape = Shape::kPartialMetadata;
  if (as == "PartialObjectMetadataList") out.shape = Shape::kPartialMetadataList;
  return out.shape != Shape::kObject;
}

// As Go's YAML writer orders them.
json::value with_sorted_keys(const json::value& v) {
  if (const json::array* list = v.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(with_sorted_keys(item));
    return out;
  }
  const json::object* object = v.if_object();
  if (object == nullptr) return v;
  std::vector<std::string_view> keys;
  for (const auto& member : *object) keys.emplace_back(member.key());
  std::ranges::sort(keys);
  json::object out;
  for (const std::string_view key : keys) out[key] = with_sorted_keys(object->at(key));
  return out;
}

}  // namespace

std::string_view MediaRange::param(std::string_view name) const {
  const auto found = params.find(name);
  return found == params.end() ? std::string_view() : std::string_view(found->second);
}

bool MediaRange::matches(std::string_view media_type) const {
  if (type == "*/*" || type == media_type) return true;
  return type.ends_with("/*") &&
         media_type.starts_with(std::string_view(type).substr(0, type.size() - 1));
}

std::vector<MediaRange> parse_accept(std::string_view accept) {
  if (trim(accept).empty()) return {MediaRange{.type = "*/*"}};
  std::vector<MediaRange> out;
  for (const std::string_view text : split(accept, ',')) {
    MediaRange range = parse_range(text);
    const auto after = std::ranges::find_if(out, [&](const MediaRange& other) {
      return other.quality != range.quality ? other.quality < range.quality
                                            : vagueness(other) > vagueness(range);
    });
    out.insert(after, std::move(range));
  }
  return out;
}

Result<Wanted> negotiate(std::string_view accept, bool tables) {
  for (const MediaRange& range : parse_accept(accept)) {
    const bool json = range.matches(kJsonType);
    if (!json && !range.matches(kYamlType)) continue;
    Wanted wanted{.encoding = json ? Encoding::kJson : Encoding::kYaml};
    if (!read_shape(range, wanted)) continue;
    if (tables || wanted.shape != Shape::kTable) return wanted;
  }
  return fail(Code::kNotAcceptable,
              "only the following media types are accepted: application/json, application/yaml");
}

bool unroutable(std::string_view accept) {
  for (const MediaRange& range : parse_accept(accept)) {
    if (range.type == kJsonType || range.type == kYamlType || range.type == kProtobuf ||
        range.type == "*/*") {
      return false;
    }
  }
  return true;
}

std::string wanted_discovery(std::string_view accept) {
  for (const MediaRange& range : parse_accept(accept)) {
    if (!range.matches(kJsonType)) continue;
    if (range.param("as").empty()) return {};
    if (range.param("as") != "APIGroupDiscoveryList" || range.param("g") != "apidiscovery.k8s.io") {
      continue;
    }
    const std::string_view version = range.param("v");
    if (version == "v2" || version == "v2beta1") return std::string(version);
  }
  return {};
}

bool pretty(const http::Request& request, const http::Url& url) {
  if (const auto asked = url.param("pretty"); asked && !asked->empty()) {
    constexpr std::string_view kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
    return std::ranges::count(kTrue, *asked) > 0;
  }
  const std::string_view agent = http::header(request.headers, "User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

void encode_answer(const http::Request& request, const http::Url& url, http::Response& response) {
  if (response.stream || response.body.empty() || response.headers.empty()) return;
  auto& [name, type] = response.headers.front();
  if (name != "Content-Type" || type != kJsonType || url.segments.empty()) return;
  const bool api = url.segments[0] == "api" || url.segments[0] == "apis";
  const auto wanted = api ? negotiate(http::header(request.headers, "Accept")) : Wanted();
  const bool yaml = wanted && wanted->encoding == Encoding::kYaml;
  if (!yaml && !pretty(request, url)) return;
  const auto parsed = json::parse(response.body);
  if (!parsed) return;
  response.body = yaml ? yaml::serialize(with_sorted_keys(*parsed)) : json::pretty(*parsed);
  if (yaml) type = kYamlType;
}

}  // namespace skiff::apiserver
