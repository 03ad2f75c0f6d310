// The images of this machine, in one folder that a running Skiff and `skiff image` share.
//
//   blobs/<hex>     manifests, configurations and layers as they came, named by their digest
//   layers/<hex>    layers unpacked, named by the digest of what was unpacked (diff id)
//   refs/<hash>     one file for each name: which manifest it means
//   uses/<owner>/   which manifests a pod runs: what is in use is not removed
//   tmp/            what is being written; only a whole thing is moved to its place
//
// Who adds holds the lock shared, who removes holds it alone. All calls from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/files.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/source.h"

namespace skiff::image {

struct StoredImage {
  std::string name = {};      // Reference::text()
  std::string target = {};    // what the registry calls it: the digest of an index or manifest
  std::string manifest = {};  // the digest of this platform's manifest
};

struct Image {
  StoredImage stored = {};
  Manifest manifest = {};
  Config config = {};
};

// A file that becomes a blob once it is whole and its digest is right.
class BlobWriter {
 public:
  BlobWriter(std::string temporary, std::string blobs);
  ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  Result<void> add(std::string_view bytes);
  std::int64_t size() const { return size_; }
  void start_over();
  // An empty digest takes what there is.
  Result<Descriptor> finish(std::string_view digest, std::int64_t size);

 private:
  const std::string temporary_;
  const std::string blobs_;
  Fd file_;
  net::Sha256 hash_ = {};
  std::int64_t size_ = 0;
};

class Store {
 public:
  // Held while something is added that no name leads to yet.
  using Lease = std::unique_ptr<Fd>;

  static Result<Store> open(const std::string& folder);

  Result<Lease> adding() const;

  bool has_blob(std::string_view digest) const;
  std::string blob_path(std::string_view digest) const;
  Result<std::string> read_blob(std::string_view digest) const;
  std::unique_ptr<BlobWriter> new_blob() const;
  Result<Descriptor> add_blob(std::string_view bytes) const;

  // Unpacks the layers that are not there yet; without root nothing, since nobody could run them.
  Result<void> unpack(const Image& image) const;
  // Folders, topmost first, as overlayfs counts; kNotFound where one is not unpacked.
  Result<std::vector<std::string>> layers(const Image& image) const;

  // From now on the name means this image, all of whose blobs are here.
  Result<void> set(const StoredImage& image) const;
  Result<std::vector<StoredImage>> list() const;  // by name
  Result<StoredImage> find(const Reference& reference) const;
  Result<Image> read(const StoredImage& stored) const;
  Result<void> remove(const Reference& reference) const;

  Result<void> use(const std::string& owner, const StoredImage& image) const;
  void forget(const std::string& owner) const;
  std::vector<std::string> owners() const;

  struct Garbage {
    int blobs = 0;
    int layers = 0;
    std::int64_t bytes = 0;  // of blobs
    bool busy = false;       // somebody is adding: nothing was removed
  };
  // Removes what no name and no pod leads to.
  Result<Garbage> collect() const;

 private:
  explicit Store(std::string folder) : folder_(std::move(folder)) {}
  std::string at(std::string_view place) const;
  Result<std::vector<std::string>> used() const;
  Result<void> unpack_one(const Descriptor& layer, const std::string& diff_id) const;
  std::string new_temporary() const;

  std::string folder_;
};

}  // namespace skiff::image
