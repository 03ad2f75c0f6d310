#include "image/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <set>

#include "image/unpack.h"
#include "net/pki.h"

namespace skiff::image {
namespace fs = std::filesystem;
namespace {

// Manifests and configurations are kilobytes; more is an attack on memory.
constexpr std::uintmax_t kStoredDocumentMax = 8 * 1024 * 1024;

std::unexpected<Error> damaged(std::string_view name, std::string_view why) {
  return fail(Code::kInternal,
              fmt::format("image {} is damaged ({}); pull or load it again", name, why));
}

json::object record_of(const StoredImage& image) {
  return {{"name", image.name}, {"target", image.target}, {"manifest", image.manifest}};
}

Result<StoredImage> from_text(std::string_view text) {
  SKIFF_ASSIGN(const json::value v, json::parse(text));
  StoredImage out{.name = std::string(json::get_string(v, {"name"})),
                  .target = std::string(json::get_string(v, {"target"})),
                  .manifest = std::string(json::get_string(v, {"manifest"}))};
  if (!is_digest(out.manifest)) return fail(Code::kInternal, "a name of an image leads nowhere");
  return out;
}

void sync_folder(const std::string& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) (void)::fsync(fd.get());
}

// A folder that is not there has none.
Result<std::vector<std::string>> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    out.push_back(at->path().filename());
  }
  if (!error || error == std::errc::no_such_file_or_directory) return out;
  return fail(Code::kInternal, fmt::format("{}: {}", folder, error.message()));
}

}  // namespace

BlobWriter::BlobWriter(std::string temporary, std::string blobs)
    : temporary_(std::move(temporary)),
      blobs_(std::move(blobs)),
      file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {}

BlobWriter::~BlobWriter() { (void)::unlink(temporary_.c_str()); }

Result<void> BlobWriter::add(std::string_view bytes) {
  if (!file_.valid()) return os_failure(temporary_);
  SKIFF_TRY(write_all(file_.get(), bytes, temporary_));
  hash_.update(bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

void BlobWriter::start_over() {
  (void)::ftruncate(file_.get(), 0);
  (void)::lseek(file_.get(), 0, SEEK_SET);
  hash_ = {};
  size_ = 0;
}

Result<Descriptor> BlobWriter::finish(std::string_view digest, std::int64_t size) {
  if (!file_.valid()) return os_failure(temporary_);
  const std::string found = "sha256:" + hash_.finish();
  if (!digest.empty() && (found != digest || size_ != size)) {
    return fail(Code::kInvalid, fmt::format("{} bytes with digest {} came instead of {} with {}",
                                            size_, found, size, digest));
  }
  if (::fdatasync(file_.get()) != 0) return os_failure(temporary_);
  const std::string path = fmt::format("{}/{}", blobs_, digest_hex(found));
  if (::rename(temporary_.c_str(), path.c_str()) != 0) return os_failure(path);
  sync_folder(blobs_);
  return Descriptor{.digest = found, .size = size_};
}

std::string Store::at(std::string_view place) const { return fmt::format("{}/{}", folder_, place); }

Result<Store> Store::open(const std::string& folder) {
  Store store(folder);
  for (const char* place : {"", "blobs", "layers", "refs", "uses", "tmp"}) {
    SKIFF_TRY(make_folder(store.at(place)));
  }
  return store;
}

Result<Store::Lease> Store::adding() const {
  auto lock = std::make_unique<Fd>(::open(at("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock->valid()) return os_failure(at("lock"));
  while (::flock(lock->get(), LOCK_SH) != 0) {
    if (errno != EINTR) return os_failure(at("lock"));
  }
  return lock;
}

std::string Store::new_temporary() const {
  static std::atomic<unsigned> count = 0;
  return at(fmt::format("tmp/{}.{}.{}", ::getpid(), count++, net::random_token(4)));
}

std::string Store::blob_path(std::string_view digest) const {
  return at(fmt::format("blobs/{}", digest_hex(digest)));
}

bool Store::has_blob(std::string_view digest) const {
  return ::access(blob_path(digest).c_str(), F_OK) == 0;
}

Result<std::string> Store::read_blob(std::string_view digest) const {
  const std::string path = blob_path(digest);
  std::error_code error;
  if (const auto size = fs::file_size(path, error); !error && size > kStoredDocumentMax) {
    return fail(Code::kTooLarge, fmt::format("{} is too large to be a document", digest));
  }
  SKIFF_ASSIGN(std::string text, read_file(path));
  if ("sha256:" + net::sha256_hex(text) != digest) {
    return fail(Code::kInternal, fmt::format("{} has changed on disk", path));
  }
  return text;
}

std::unique_ptr<BlobWriter> Store::new_blob() const {
  return std::make_unique<BlobWriter>(new_temporary(), at("blobs"));
}

Result<Descriptor> Store::add_blob(std::string_view bytes) const {
  const auto writer = new_blob();
  SKIFF_TRY(writer->add(bytes));
  return writer->finish("", 0);
}

Result<void> Store::unpack_one(const Descriptor& layer, const std::string& diff_id) const {
  const std::string place = at(fmt::format("layers/{}", digest_hex(diff_id)));
  if (::access(place.c_str(), F_OK) == 0) return {};
  const Fd file(::open(blob_path(layer.digest).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return os_failure(blob_path(layer.digest));
  const std::string temporary = new_temporary();
  if (::mkdir(temporary.c_str(), 0755) != 0) return os_failure(temporary);
  const auto unpacked = [&]() -> Result<void> {
    const auto raw = fd_source(file.get(), layer.digest);
    SKIFF_ASSIGN(const auto plain, decompressed(*raw));
    HashedSource hashed(*plain);
    SKIFF_TRY(unpack_layer(hashed, temporary));
    SKIFF_ASSIGN(const std::string found, hashed.finish());
    if (found != diff_id) {
      return fail(Code::kInvalid, fmt::format("layer {} unpacks to {} instead of {}", layer.digest,
                                              found, diff_id));
    }
    // All of it is on disk before it has its name.
    const Fd tree(::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!tree.valid() || ::syncfs(tree.get()) != 0) return os_failure(temporary);
    if (::rename(temporary.c_str(), place.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
      return os_failure(place);
    }
    sync_folder(at("layers"));
    return {};
  }();
  std::error_code ignored;
  fs::remove_all(temporary, ignored);  // it failed, or somebody else was quicker
  return unpacked;
}

Result<void> Store::unpack(const Image& image) const {
  if (::geteuid() != 0) return {};
  const auto& ids = image.config.diff_ids;
  if (ids.size() != image.manifest.layers.size()) {
    return fail(Code::kInvalid,
                fmt::format("image {} has {} layers but names {}", image.stored.name,
                            image.manifest.layers.size(), ids.size()));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    SKIFF_TRY(unpack_one(image.manifest.layers[i], ids[i]));
  }
  return {};
}

Result<std::vector<std::string>> Store::layers(const Image& image) const {
  std::vector<std::string> out;
  for (auto id = image.config.diff_ids.rbegin(); id != image.config.diff_ids.rend(); ++id) {
    std::string place = at(fmt::format("layers/{}", digest_hex(*id)));
    if (::access(place.c_str(), F_OK) != 0) return os_failure(place);
    // Overlayfs refuses the same folder twice, and a second time it would add nothing.
    if (std::ranges::find(out, place) == out.end()) out.push_back(std::move(place));
  }
  return out;
}

Result<void> Store::set(const StoredImage& image) const {
  return replace_file(at("refs/" + net::sha256_hex(image.name)),
                      json::serialize(record_of(image)) + "\n");
}

Result<std::vector<StoredImage>> Store::list() const {
  std::vector<StoredImage> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(at("refs"), error)) {
    if (entry.path().filename().native().starts_with('.')) continue;
    const auto text = read_file(entry.path());
    if (!text && text.error().code != Code::kNotFound) return std::unexpected(text.error());
    if (!text) continue;  // removed meanwhile
    if (auto image = from_text(*text)) out.push_back(std::move(*image));
  }
  if (error) return fail(Code::kInternal, fmt::format("{}: {}", at("refs"), error.message()));
  std::ranges::sort(out, {}, &StoredImage::name);
  return out;
}

Result<StoredImage> Store::find(const Reference& reference) const {
  const auto text = read_file(at("refs/" + net::sha256_hex(reference.text())));
  if (text) return from_text(*text);
  if (!reference.digest.empty()) {
    // Another name of the same repository may have brought it.
    SKIFF_ASSIGN(const auto all, list());
    for (const StoredImage& image : all) {
      const bool same = image.name.starts_with(reference.name() + ":") ||
                        image.name.starts_with(reference.name() + "@");
      const bool digest = image.target == reference.digest || image.manifest == reference.digest;
      if (same && digest) return image;
    }
  }
  return fail(Code::kNotFound, fmt::format("image {} is not on this machine", reference.text()));
}

Result<Image> Store::read(const StoredImage& stored) const {
  Image out{.stored = stored};
  const auto manifest = read_blob(stored.manifest);
  if (!manifest) return damaged(stored.name, manifest.error().message);
  SKIFF_ASSIGN(const json::value document, json::parse(*manifest));
  SKIFF_ASSIGN(out.manifest, parse_manifest(document));
  const auto config = read_blob(out.manifest.config.digest);
  if (!config) return damaged(stored.name, config.error().message);
  SKIFF_ASSIGN(out.config, parse_config(*config));
  return out;
}

Result<void> Store::remove(const Reference& reference) const {
  SKIFF_ASSIGN(const StoredImage found, find(reference));
  const std::string path = at("refs/" + net::sha256_hex(found.name));
  if (::unlink(path.c_str()) != 0) return os_failure(path);
  sync_folder(at("refs"));
  return {};
}

Result<void> Store::use(const std::string& owner, const StoredImage& image) const {
  const std::string folder = at("uses/" + owner);
  SKIFF_TRY(make_folder(folder));
  return replace_file(fmt::format("{}/{}", folder, digest_hex(image.manifest)),
                      json::serialize(record_of(image)) + "\n");
}

void Store::forget(const std::string& owner) const {
  if (owner.empty() || owner.find('/') != std::string::npos || owner.starts_with('.')) return;
  std::error_code ignored;
  fs::remove_all(at("uses/" + owner), ignored);
}

std::vector<std::string> Store::owners() const {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(at("uses"), error)) {
    out.push_back(entry.path().filename());
  }
  return out;
}

// The manifests that something leads to.
Result<std::vector<std::string>> Store::used() const {
  std::set<std::string> out;
  SKIFF_ASSIGN(const auto all, list());
  for (const StoredImage& image : all) out.insert(image.manifest);
  // Pods come and go meanwhile: an owner that is gone has no use for anything. What cannot be read
  // is an error, for what it leads to must not be taken for unused.
  SKIFF_ASSIGN(const auto owners, names_in(at("uses")));
  for (const std::string& owner : owners) {
    SKIFF_ASSIGN(const auto names, names_in(at("uses/" + owner)));
    for (const std::string& name : names) {
      if (is_digest("sha256:" + name)) out.insert("sha256:" + name);
    }
  }
  return std::vector<std::string>(out.begin(), out.end());
}

Result<Store::Garbage> Store::collect() const {
  const Fd lock(::open(at("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return os_failure(at("lock"));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return Garbage{.busy = true};
  std::set<std::string> blobs, layers;
  SKIFF_ASSIGN(const auto manifests, used());
  for (const std::string& digest : manifests) {
    blobs.emplace(digest_hex(digest));
    const auto image = read({.name = digest, .manifest = digest});
    // Which layers a damaged one needs nobody can tell: nothing is removed until it is repaired by
    // the next pull, or removed itself.
    if (!image) return Garbage{};
    blobs.emplace(digest_hex(image->manifest.config.digest));
    for (const Descriptor& layer : image->manifest.layers) blobs.emplace(digest_hex(layer.digest));
    for (const std::string& id : image->config.diff_ids) layers.emplace(digest_hex(id));
  }
  Garbage out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(at("blobs"), error)) {
    if (blobs.contains(entry.path().filename())) continue;
    out.bytes += static_cast<std::int64_t>(entry.file_size(error));
    if (fs::remove(entry.path(), error)) ++out.blobs;
  }
  for (const auto& entry : fs::directory_iterator(at("layers"), error)) {
    if (layers.contains(entry.path().filename())) continue;
    // Under its name it is whole or not there.
    const std::string away = new_temporary();
    if (::rename(entry.path().c_str(), away.c_str()) == 0) ++out.layers;
  }
  for (const auto& entry : fs::directory_iterator(at("tmp"), error)) {
    fs::remove_all(entry.path(), error);
  }
  return out;
}

}  // namespace skiff::image
