// From an image reference to files of this machine. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "image/store.h"
#include "image/user.h"
#include "node/environment.h"
#include "node/runtime.h"

namespace skiff::node {

struct ResolvedImage {
  std::string rootfs = {};  // empty: the machine's own files
  std::string venv = {};
  bool host = true;
  std::vector<std::string> entrypoint = {};
  std::vector<std::string> args = {};
  std::string working_dir = {};
  Variables env = {};
  std::vector<Mount> mounts = {};
  // Of an image of the store.
  std::optional<image::StoredImage> stored = {};
  image::Accounts accounts = {};
  std::string user = {};
};

// Why a container waits: the reason kubectl shows, and a sentence with the remedies.
struct Refusal {
  std::string reason = {};
  std::string message = {};
};

// * matches any run of characters, slashes included, and ? one. A pattern without a tag or digest
// matches every tag.
bool image_matches(std::string_view pattern, std::string_view image);

// The mapping whose pattern has the most plain characters wins; between equals the first by name.
// `host_for_all` is `skiff up --images=host`.
std::expected<ResolvedImage, Refusal> resolve_image(std::string_view image,
                                                    const std::vector<Object>& mappings,
                                                    bool host_for_all);

// An image of the store, as its own configuration says it is run.
ResolvedImage from_store(const image::Image& image, image::Accounts accounts);
// What kubectl shows as imageID: the name with the digest that the registry knows.
std::string image_id(const image::StoredImage& image);

// command and args of the container over entrypoint and args of the image, expanded.
std::expected<std::vector<std::string>, Refusal> command_line(const json::value& container,
                                                              const ResolvedImage& image,
                                                              const Variables& variables);

}  // namespace skiff::node
