// What a registry says about an image: manifests, indexes and configurations, in Docker's and OCI's
// words. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::image {

struct Descriptor {
  std::string media_type = {};
  std::string digest = {};
  std::int64_t size = 0;

  bool operator==(const Descriptor&) const = default;
};

struct Platform {
  std::string os = "linux";
  std::string architecture = {};  // Go's word: amd64, arm64
};
// Of the machine this is compiled for.
Platform this_platform();

inline constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kOciLayer = "application/vnd.oci.image.layer.v1.tar";
inline constexpr std::string_view kDockerManifest =
    "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kDockerIndex =
    "application/vnd.docker.distribution.manifest.list.v2+json";

struct Manifest {
  Descriptor config = {};
  std::vector<Descriptor> layers = {};  // lowest first

  std::int64_t size() const;  // of everything that is downloaded
};

// A text is an index if its media type says so or, where it has none, if it lists manifests.
bool is_index(const json::value& document);
// The one for this platform; the error names those there are.
Result<Descriptor> choose_platform(const json::value& index, const Platform& platform);
Result<Manifest> parse_manifest(const json::value& document);
Result<Descriptor> parse_descriptor(const json::value& v);
json::object to_json(const Descriptor& descriptor);

// What an image says about how it is run.
struct Config {
  std::string os = {};
  std::string architecture = {};
  std::vector<std::string> diff_ids = {};  // digests of the layers unpacked, lowest first
  std::vector<std::pair<std::string, std::string>> env = {};
  std::vector<std::string> entrypoint = {};
  std::vector<std::string> cmd = {};
  std::string working_dir = {};
  std::string user = {};  // name or number, perhaps :group
  std::string stop_signal = {};
};
Result<Config> parse_config(std::string_view text);

}  // namespace skiff::image
