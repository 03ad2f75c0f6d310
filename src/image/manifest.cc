#include "image/manifest.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "image/reference.h"

namespace skiff::image {
namespace {

// Docker stops at 127, so nobody makes images of more.
constexpr std::size_t kLayersMax = 127;

std::unexpected<Error> bad_manifest(std::string_view what) {
  return fail(Code::kInvalid, fmt::format("the image cannot be read: {}", what));
}

}  // namespace

Platform this_platform() {
#if defined(__aarch64__)
  return {.architecture = "arm64"};
#else
  return {.architecture = "amd64"};
#endif
}

std::int64_t Manifest::size() const {
  std::int64_t sum = config.size;
  for (const Descriptor& layer : layers) sum += layer.size;
  return sum;
}

bool is_index(const json::value& document) {
  const std::string_view type = json::get_string(document, {"mediaType"});
  if (!type.empty()) return type == kOciIndex || type == kDockerIndex;
  return json::find(document, {"manifests"}) != nullptr;
}

Result<Descriptor> parse_descriptor(const json::value& v) {
  Descriptor out{.media_type = std::string(json::get_string(v, {"mediaType"})),
                 .digest = std::string(json::get_string(v, {"digest"})),
                 .size = json::get_int(v, {"size"}).value_or(-1)};
  if (!is_digest(out.digest)) {
    return bad_manifest(fmt::format("\"{}\" is not a SHA-256 digest", out.digest));
  }
  if (out.size < 0) return bad_manifest(fmt::format("{} has no size", out.digest));
  return out;
}

json::object to_json(const Descriptor& descriptor) {
  return {{"mediaType", descriptor.media_type},
          {"digest", descriptor.digest},
          {"size", descriptor.size}};
}

Result<Descriptor> choose_platform(const json::value& index, const Platform& platform) {
  const json::value* best = nullptr;
  std::vector<std::string> there;
  for (const json::value& entry : json::get_array(index, {"manifests"})) {
    const std::string_view os = json::get_string(entry, {"platform", "os"});
    const std::string_view architecture = json::get_string(entry, {"platform", "architecture"});
    const bool alone = json::find(entry, {"platform"}) == nullptr;
    if (!alone && os != "unknown") there.push_back(fmt::format("{}/{}", os, architecture));
    const bool fits = alone || (os == platform.os && architecture == platform.architecture);
    if (!fits) continue;
    // Later instruction sets of the same name (amd64/v3) come second to what runs everywhere.
    const std::string_view variant = json::get_string(entry, {"platform", "variant"});
    const bool plain = variant.empty() || variant == "v8";
    if (best == nullptr || (plain && !alone)) best = &entry;
    if (plain && !alone) break;
  }
  if (best != nullptr) return parse_descriptor(*best);
  return fail(
      Code::kNotFound,
      fmt::format("no match for platform {}/{} in the image; it is there for: {}", platform.os,
                  platform.architecture, there.empty() ? "nothing" : join(there, ", ")));
}

Result<Manifest> parse_manifest(const json::value& document) {
  if (json::get_int(document, {"schemaVersion"}) == 1) {
    return bad_manifest("its manifest is of schema version 1, which registries gave up in 2020");
  }
  const json::value* config = json::find(document, {"config"});
  if (config == nullptr) return bad_manifest("its manifest names no configuration");
  Manifest out;
  SKIFF_ASSIGN(out.config, parse_descriptor(*config));
  for (const json::value& layer : json::get_array(document, {"layers"})) {
    SKIFF_ASSIGN(Descriptor parsed, parse_descriptor(layer));
    out.layers.push_back(std::move(parsed));
  }
  if (out.layers.size() > kLayersMax) {
    return bad_manifest(fmt::format("it has {} layers; at most {}", out.layers.size(), kLayersMax));
  }
  return out;
}

Result<Config> parse_config(std::string_view text) {
  SKIFF_ASSIGN(const json::value document, json::parse(text));
  Config out{.os = std::string(json::get_string(document, {"os"})),
             .architecture = std::string(json::get_string(document, {"architecture"})),
             .diff_ids = json::strings(json::get_array(document, {"rootfs", "diff_ids"})),
             .entrypoint = json::strings(json::get_array(document, {"config", "Entrypoint"})),
             .cmd = json::strings(json::get_array(document, {"config", "Cmd"})),
             .working_dir = std::string(json::get_string(document, {"config", "WorkingDir"})),
             .user = std::string(json::get_string(document, {"config", "User"})),
             .stop_signal = std::string(json::get_string(document, {"config", "StopSignal"}))};
  for (const std::string& id : out.diff_ids) {
    if (!is_digest(id)) return bad_manifest(fmt::format("\"{}\" is not a SHA-256 digest", id));
  }
  for (const std::string& pair : json::strings(json::get_array(document, {"config", "Env"}))) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    out.env.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

}  // namespace skiff::image
