#include "image/source.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace skiff::image {
namespace {

constexpr std::size_t kBuffer = 128 * 1024;

class StringSource : public Source {
 public:
  explicit StringSource(std::string text) : text_(std::move(text)) {}
  Result<std::size_t> read(char* out, std::size_t size) override {
    const std::size_t n = std::min(size, text_.size() - at_);
    std::memcpy(out, text_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  const std::string text_;
  std::size_t at_ = 0;
};

class FdSource : public Source {
 public:
  FdSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Result<std::size_t> read(char* out, std::size_t size) override {
    while (true) {
      const ssize_t n = ::read(fd_, out, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) {
        return fail(Code::kInternal, fmt::format("{}: {}", name_, std::strerror(errno)));
      }
    }
  }

 private:
  const int fd_;
  const std::string name_;
};

// The start was read to find out what it is; it comes first.
class Rewound : public Source {
 public:
  Rewound(std::string start, Source& below) : start_(std::move(start)), below_(below) {}
  Result<std::size_t> read(char* out, std::size_t size) override {
    if (at_ == start_.size()) return below_.read(out, size);
    const std::size_t n = std::min(size, start_.size() - at_);
    std::memcpy(out, start_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  const std::string start_;
  std::size_t at_ = 0;
  Source& below_;
};

class Gunzip : public Source {
 public:
  explicit Gunzip(std::unique_ptr<Source> below) : below_(std::move(below)), in_(kBuffer) {
    // 16: with gzip's own header.
    ready_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Result<std::size_t> read(char* out, std::size_t size) override {
    if (!ready_) return fail(Code::kInternal, "no memory to unpack gzip");
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
    const auto room = stream_.avail_out;
    while (stream_.avail_out == room && room > 0) {
      if (stream_.avail_in == 0) {
        SKIFF_ASSIGN(const std::size_t n, below_->read(in_.data(), in_.size()));
        if (n == 0) {
          if (between_) return std::size_t{0};
          return fail(Code::kInvalid, "the gzip data ends too early");
        }
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(n);
      }
      between_ = false;
      const int done = inflate(&stream_, Z_NO_FLUSH);
      if (done == Z_STREAM_END) {
        // Parallel packers write many members one after another.
        between_ = true;
        inflateReset(&stream_);
      } else if (done != Z_OK && done != Z_BUF_ERROR) {
        return fail(Code::kInvalid, "the gzip data is broken");
      }
    }
    return room - stream_.avail_out;
  }

 private:
  std::unique_ptr<Source> below_;
  std::vector<char> in_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool between_ = false;
};

class Unzstd : public Source {
 public:
  explicit Unzstd(std::unique_ptr<Source> below)
      : below_(std::move(below)), data_(kBuffer), stream_(ZSTD_createDStream()) {}
  ~Unzstd() override { ZSTD_freeDStream(stream_); }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;

  Result<std::size_t> read(char* out, std::size_t size) override {
    if (stream_ == nullptr) return fail(Code::kInternal, "no memory to unpack zstd");
    ZSTD_outBuffer to{out, size, 0};
    while (to.pos == 0 && size > 0) {
      if (in_.pos == in_.size && !flushing_) {
        SKIFF_ASSIGN(const std::size_t n, below_->read(data_.data(), data_.size()));
        if (n == 0) {
          if (between_) return std::size_t{0};
          return fail(Code::kInvalid, "the zstd data ends too early");
        }
        in_ = {data_.data(), n, 0};
      }
      const std::size_t left = ZSTD_decompressStream(stream_, &to, &in_);
      if (ZSTD_isError(left) != 0) {
        return fail(Code::kInvalid,
                    fmt::format("the zstd data is broken: {}", ZSTD_getErrorName(left)));
      }
      between_ = left == 0;
      // A full output may leave more inside of the decoder than the input shows.
      flushing_ = !between_ && to.pos == to.size;
    }
    return to.pos;
  }

 private:
  std::unique_ptr<Source> below_;
  std::vector<char> data_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool between_ = false;
  bool flushing_ = false;
};

}  // namespace

std::unique_ptr<Source> string_source(std::string text) {
  return std::make_unique<StringSource>(std::move(text));
}

std::unique_ptr<Source> fd_source(int fd, std::string name) {
  return std::make_unique<FdSource>(fd, std::move(name));
}

Result<std::size_t> HashedSource::read(char* out, std::size_t size) {
  SKIFF_ASSIGN(const std::size_t n, below_.read(out, size));
  hash_.update({out, n});
  return n;
}

Result<std::string> HashedSource::finish() {
  std::vector<char> rest(kBuffer);
  while (true) {
    SKIFF_ASSIGN(const std::size_t n, read(rest.data(), rest.size()));
    if (n == 0) return "sha256:" + hash_.finish();
  }
}

Compression compression_of(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return Compression::kGzip;
  if (start.starts_with("\x28\xb5\x2f\xfd")) return Compression::kZstd;
  return Compression::kNone;
}

Result<std::unique_ptr<Source>> decompressed(Source& below) {
  std::string start(4, '\0');
  std::size_t have = 0;
  while (have < start.size()) {
    SKIFF_ASSIGN(const std::size_t n, below.read(start.data() + have, start.size() - have));
    if (n == 0) break;
    have += n;
  }
  start.resize(have);
  auto whole = std::make_unique<Rewound>(start, below);
  switch (compression_of(start)) {
    case Compression::kGzip:
      return std::make_unique<Gunzip>(std::move(whole));
    case Compression::kZstd:
      return std::make_unique<Unzstd>(std::move(whole));
    case Compression::kNone:
      break;
  }
  return whole;
}

}  // namespace skiff::image
