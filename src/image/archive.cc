#include "image/archive.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/strings.h"
#include "net/pki.h"

namespace skiff::image {
namespace {

constexpr std::string_view kContainerdName = "io.containerd.image.name";
constexpr std::string_view kOciName = "org.opencontainers.image.ref.name";

std::unexpected<Error> bad_archive(std::string_view why) {
  return fail(Code::kInvalid, fmt::format("this is no archive of images: {}", why));
}

// "./a//b/../c" as "a/c".
std::string plain(const std::string& path) {
  std::string out = std::filesystem::path("/" + path).lexically_normal().string();
  while (out.starts_with('/')) out.erase(0, 1);
  while (out.ends_with('/')) out.pop_back();
  return out;
}

class Loader {
 public:
  Loader(const Store& store, std::string name) : store_(store), name_(std::move(name)) {}

  // Every file becomes a blob; what nobody leads to is garbage afterwards.
  Result<void> read_all(Source& archive) {
    SKIFF_ASSIGN(const auto bytes, decompressed(archive));
    TarReader tar(*bytes);
    std::vector<char> piece(128 * 1024);
    while (true) {
      SKIFF_ASSIGN(const auto entry, tar.next());
      if (!entry) return {};
      const std::string path = plain(entry->path);
      if (entry->type == TarType::kSymLink) {
        links_[path] = plain(path.substr(0, path.rfind('/') + 1) + entry->link);
      } else if (entry->type == TarType::kHardLink) {
        links_[path] = plain(entry->link);
      }
      if (entry->type != TarType::kFile) continue;
      const auto blob = store_.new_blob();
      while (true) {
        SKIFF_ASSIGN(const std::size_t n, tar.read(piece.data(), piece.size()));
        if (n == 0) break;
        SKIFF_TRY(blob->add({piece.data(), n}));
      }
      SKIFF_ASSIGN(files_[path], blob->finish("", 0));
    }
  }

  Result<std::vector<StoredImage>> take_images() {
    if (files_.contains("index.json")) {
      SKIFF_TRY(read_docker_names());
      SKIFF_TRY(take_layout());
    } else if (files_.contains("manifest.json")) {
      SKIFF_TRY(take_docker());
    } else {
      return bad_archive("it has neither index.json nor manifest.json");
    }
    if (added_.empty()) return bad_archive("it has no image for this machine");
    return std::move(added_);
  }

 private:
  Result<Descriptor> file(const std::string& given) const {
    std::string path = plain(given);
    for (int hops = 0; hops < 8; ++hops) {
      if (const auto found = files_.find(path); found != files_.end()) return found->second;
      const auto link = links_.find(path);
      if (link == links_.end()) break;
      path = link->second;
    }
    return bad_archive(fmt::format("{} is missing", given));
  }

  Result<json::value> document(const std::string& path) const {
    SKIFF_ASSIGN(const Descriptor found, file(path));
    SKIFF_ASSIGN(const std::string text, store_.read_blob(found.digest));
    return json::parse(text);
  }

  // Docker's own list has the tags that its index leaves out.
  Result<void> read_docker_names() {
    if (!files_.contains("manifest.json")) return {};
    SKIFF_ASSIGN(const json::value list, document("manifest.json"));
    for (const json::value& entry : json::get_array(list, {})) {
      const auto config = file(std::string(json::get_string(entry, {"Config"})));
      if (!config) continue;
      names_[config->digest] = json::strings(json::get_array(entry, {"RepoTags"}));
    }
    return {};
  }

  Result<void> take_layout() {
    SKIFF_ASSIGN(const json::value index, document("index.json"));
    for (const json::value& entry : json::get_array(index, {"manifests"})) {
      SKIFF_ASSIGN(Descriptor target, parse_descriptor(entry));
      if (!store_.has_blob(target.digest)) return bad_archive(target.digest + " is missing");
      Descriptor at = target;
      SKIFF_ASSIGN(json::value document, parsed(at));
      if (is_index(document)) {
        SKIFF_ASSIGN(at, choose_platform(document, this_platform()));
        if (!store_.has_blob(at.digest)) return bad_archive(at.digest + " is missing");
        SKIFF_ASSIGN(document, parsed(at));
      }
      SKIFF_ASSIGN(const Manifest manifest, parse_manifest(document));
      std::vector<std::string> names;
      for (const std::string_view key : {kContainerdName, kOciName}) {
        const auto text = json::get_string(entry, {"annotations", key});
        // The second is often a tag alone.
        const bool whole = key == kContainerdName || text.find_first_of("/:") != text.npos;
        if (names.empty() && !text.empty() && whole) names.emplace_back(text);
      }
      if (names.empty()) names = names_[manifest.config.digest];
      SKIFF_TRY(add(names, target.digest, at.digest));
    }
    return {};
  }

  Result<json::value> parsed(const Descriptor& descriptor) const {
    SKIFF_ASSIGN(const std::string text, store_.read_blob(descriptor.digest));
    return json::parse(text);
  }

  Result<void> take_docker() {
    SKIFF_ASSIGN(const json::value list, document("manifest.json"));
    for (const json::value& entry : json::get_array(list, {})) {
      SKIFF_ASSIGN(Descriptor config, file(std::string(json::get_string(entry, {"Config"}))));
      config.media_type = "application/vnd.docker.container.image.v1+json";
      json::array layers;
      for (const std::string& path : json::strings(json::get_array(entry, {"Layers"}))) {
        SKIFF_ASSIGN(Descriptor layer, file(path));
        layers.push_back(to_json(with_type(std::move(layer))));
      }
      const json::object manifest{{"schemaVersion", 2},
                                  {"mediaType", kDockerManifest},
                                  {"config", to_json(config)},
                                  {"layers", std::move(layers)}};
      SKIFF_ASSIGN(const Descriptor made, store_.add_blob(json::serialize(manifest)));
      SKIFF_TRY(add(json::strings(json::get_array(entry, {"RepoTags"})), made.digest, made.digest));
    }
    return {};
  }

  // Archives have layers as they are: mostly not packed at all.
  Descriptor with_type(Descriptor layer) const {
    layer.media_type = "application/vnd.docker.image.rootfs.diff.tar";
    const Fd blob(::open(store_.blob_path(layer.digest).c_str(), O_RDONLY | O_CLOEXEC));
    char start[4] = {};
    const auto source = fd_source(blob.get(), layer.digest);
    const auto n = source->read(start, sizeof start);
    if (n && compression_of({start, *n}) == Compression::kGzip) layer.media_type += ".gzip";
    if (n && compression_of({start, *n}) == Compression::kZstd) layer.media_type += ".zstd";
    return layer;
  }

  Result<void> add(std::vector<std::string> names, const std::string& target,
                   const std::string& manifest) {
    if (!name_.empty()) names = {std::exchange(name_, "")};
    if (names.empty()) {
      return fail(Code::kInvalid, "the image has no name; give it one with: --name NAME");
    }
    for (const std::string& name : names) {
      SKIFF_ASSIGN(const Reference reference, parse_reference(name));
      const StoredImage stored{.name = reference.text(), .target = target, .manifest = manifest};
      SKIFF_ASSIGN(const Image image, store_.read(stored));
      for (const Descriptor& layer : image.manifest.layers) {
        if (!store_.has_blob(layer.digest)) return bad_archive(layer.digest + " is missing");
      }
      SKIFF_TRY(store_.unpack(image));
      SKIFF_TRY(store_.set(stored));
      added_.push_back(stored);
    }
    return {};
  }

  const Store& store_;
  std::string name_;
  std::map<std::string, Descriptor> files_ = {};
  std::map<std::string, std::string> links_ = {};
  std::map<std::string, std::vector<std::string>> names_ = {};  // by the configuration's digest
  std::vector<StoredImage> added_ = {};
};

std::string blob_name(std::string_view digest) {
  return fmt::format("blobs/sha256/{}", digest_hex(digest));
}

Result<void> write_blob(const Store& store, TarWriter& tar, const Descriptor& blob) {
  const std::string path = store.blob_path(blob.digest);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_failure(path);
  const auto source = fd_source(file.get(), path);
  return tar.add_from({.path = blob_name(blob.digest), .size = blob.size}, *source);
}

}  // namespace

Result<std::vector<StoredImage>> load_archive(const Store& store, Source& archive,
                                              const std::string& name) {
  SKIFF_ASSIGN(const auto lease, store.adding());
  Loader loader(store, name);
  SKIFF_TRY(loader.read_all(archive));
  return loader.take_images();
}

Result<void> save_archive(const Store& store, const std::vector<StoredImage>& images,
                          const TarWriter::Sink& sink) {
  SKIFF_ASSIGN(const auto lease, store.adding());
  TarWriter tar(sink);
  std::set<std::string> written;
  json::array index, docker;
  SKIFF_TRY(tar.add({.path = "oci-layout"}, R"({"imageLayoutVersion":"1.0.0"})"));
  for (const StoredImage& stored : images) {
    SKIFF_ASSIGN(const Image image, store.read(stored));
    SKIFF_ASSIGN(const std::string text, store.read_blob(stored.manifest));
    SKIFF_ASSIGN(const json::value document, json::parse(text));
    const Descriptor manifest{
        .media_type = std::string(json::get_string(document, {"mediaType"}, kOciManifest)),
        .digest = stored.manifest,
        .size = static_cast<std::int64_t>(text.size())};
    std::vector<Descriptor> blobs = {manifest, image.manifest.config};
    json::array layers;
    for (const Descriptor& layer : image.manifest.layers) {
      blobs.push_back(layer);
      layers.emplace_back(blob_name(layer.digest));
    }
    for (const Descriptor& blob : blobs) {
      if (written.insert(blob.digest).second) SKIFF_TRY(write_blob(store, tar, blob));
    }
    json::object entry = to_json(manifest);
    json::array tags;
    json::object annotations{{kContainerdName, stored.name}};
    if (stored.name.find('@') == std::string::npos) {
      tags.emplace_back(stored.name);
      annotations[kOciName] = stored.name.substr(stored.name.rfind(':') + 1);
    }
    entry["annotations"] = std::move(annotations);
    entry["platform"] =
        json::object{{"os", image.config.os}, {"architecture", image.config.architecture}};
    index.push_back(std::move(entry));
    docker.push_back(json::object{{"Config", blob_name(image.manifest.config.digest)},
                                  {"RepoTags", std::move(tags)},
                                  {"Layers", std::move(layers)}});
  }
  const json::object layout{
      {"schemaVersion", 2}, {"mediaType", kOciIndex}, {"manifests", std::move(index)}};
  SKIFF_TRY(tar.add({.path = "index.json"}, json::serialize(layout)));
  SKIFF_TRY(tar.add({.path = "manifest.json"}, json::serialize(json::value(docker))));
  return tar.finish();
}

}  // namespace skiff::image
