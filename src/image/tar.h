// Tar archives, read and written as streams: ustar, GNU's long names and pax records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/source.h"

namespace skiff::image {

enum class TarType { kFile, kHardLink, kSymLink, kCharDevice, kBlockDevice, kFolder, kFifo };

struct TarEntry {
  std::string path = {};  // as written: judge it before use
  TarType type = TarType::kFile;
  std::string link = {};  // of links
  std::uint32_t mode = 0644;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t size = 0;
  std::int64_t mtime = 0;
  std::map<std::string, std::string> xattrs = {};
};

class TarReader {
 public:
  explicit TarReader(Source& source) : source_(source) {}

  // The next entry, what is left of the one before skipped; nothing at the end.
  Result<std::optional<TarEntry>> next();
  // Of the entry's contents; zero: they end.
  Result<std::size_t> read(char* out, std::size_t size);

 private:
  Result<bool> read_block(char* block);
  Result<void> skip_rest();
  Result<std::string> contents(std::int64_t size);
  Result<void> take_pax(std::string_view records);

  Source& source_;
  std::int64_t left_ = 0;     // of the contents
  std::int64_t padding_ = 0;  // after them
  // What extended headers say about the next entry.
  std::optional<std::string> path_ = {}, link_ = {};
  std::map<std::string, std::string, std::less<>> pax_ = {};
};

class TarWriter {
 public:
  using Sink = std::function<Result<void>(std::string_view)>;
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  Result<void> add(const TarEntry& entry, std::string_view contents = {});
  // The contents come from `source`, which must have entry.size bytes.
  Result<void> add_from(const TarEntry& entry, Source& source);
  Result<void> finish();

 private:
  Result<void> header(const TarEntry& entry);
  Result<void> pad(std::int64_t size);

  Sink sink_;
};

}  // namespace skiff::image
