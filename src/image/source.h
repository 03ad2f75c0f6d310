// Bytes that are pulled: files, downloads, and what is inside of gzip and zstd.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/digest.h"

namespace skiff::image {

class Source {
 public:
  virtual ~Source() = default;
  // Up to `size` bytes, as soon as there are any; zero: the end.
  virtual Result<std::size_t> read(char* out, std::size_t size) = 0;
};

std::unique_ptr<Source> string_source(std::string text);
// Reads from the descriptor, which stays the caller's.
std::unique_ptr<Source> fd_source(int fd, std::string name);

// Counts and hashes what goes through.
class HashedSource : public Source {
 public:
  explicit HashedSource(Source& below) : below_(below) {}
  Result<std::size_t> read(char* out, std::size_t size) override;
  // "sha256:..." of everything that was read; the end of the source first.
  Result<std::string> finish();

 private:
  Source& below_;
  net::Sha256 hash_ = {};
};

// What the bytes are once gzip or zstd is taken off; others come as they are. `below` must outlive
// the answer.
Result<std::unique_ptr<Source>> decompressed(Source& below);
enum class Compression { kNone, kGzip, kZstd };
// By the first bytes.
Compression compression_of(std::string_view start);

}  // namespace skiff::image
