// Small images for tests, made in memory.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "image/manifest.h"
#include "image/source.h"
#include "image/tar.h"
#include "net/pki.h"

namespace skiff::image::testing {

struct File {
  TarEntry entry = {};
  std::string contents = {};
};

inline File file(std::string path, std::string contents, std::uint32_t mode = 0644) {
  return {.entry = {.path = std::move(path), .mode = mode}, .contents = std::move(contents)};
}
inline File folder(std::string path) {
  return {.entry = {.path = std::move(path), .type = TarType::kFolder, .mode = 0755}};
}
inline File link(std::string path, std::string target, TarType type = TarType::kSymLink) {
  return {.entry = {.path = std::move(path), .type = type, .link = std::move(target)}};
}

inline std::string tar(const std::vector<File>& files) {
  std::string out;
  TarWriter writer([&out](std::string_view bytes) -> Result<void> {
    out += bytes;
    return {};
  });
  for (const File& one : files) EXPECT_TRUE(writer.add(one.entry, one.contents));
  EXPECT_TRUE(writer.finish());
  return out;
}

inline std::string digest_of(std::string_view bytes) { return "sha256:" + net::sha256_hex(bytes); }

struct TestImage {
  std::string config = {};
  std::string manifest = {};
  std::vector<std::string> layers = {};  // plain archives
};

inline TestImage make_image(const std::vector<std::string>& layers, json::object config = {}) {
  TestImage out{.layers = layers};
  json::array ids, descriptors;
  for (const std::string& layer : layers) {
    ids.emplace_back(digest_of(layer));
    descriptors.push_back(to_json(Descriptor{.media_type = std::string(kOciLayer),
                                             .digest = digest_of(layer),
                                             .size = static_cast<std::int64_t>(layer.size())}));
  }
  out.config = json::serialize(json::object{{"os", "linux"},
                                            {"architecture", this_platform().architecture},
                                            {"config", std::move(config)},
                                            {"rootfs", {{"diff_ids", std::move(ids)}}}});
  out.manifest = json::serialize(json::object{
      {"schemaVersion", 2},
      {"mediaType", kOciManifest},
      {"config", to_json(Descriptor{.media_type = std::string(kOciConfig),
                                    .digest = digest_of(out.config),
                                    .size = static_cast<std::int64_t>(out.config.size())})},
      {"layers", std::move(descriptors)}});
  return out;
}

// As `docker save` wrote it for years.
inline std::string docker_archive(const TestImage& image, const std::vector<std::string>& tags) {
  std::vector<File> files = {file("config.json", image.config)};
  json::array names, layers;
  for (std::size_t i = 0; i < image.layers.size(); ++i) {
    const std::string path = std::to_string(i) + "/layer.tar";
    files.push_back(file(path, image.layers[i]));
    layers.emplace_back(path);
  }
  for (const std::string& tag : tags) names.emplace_back(tag);
  files.push_back(
      file("manifest.json",
           json::serialize(json::value(json::array{json::object{{"Config", "config.json"},
                                                                {"RepoTags", std::move(names)},
                                                                {"Layers", std::move(layers)}}}))));
  return tar(files);
}

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "skiff-image-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace skiff::image::testing
