#include "store/packing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace skiff::store {
namespace {

// Higher ones take three times as long for a tenth less.
constexpr int kLevel = 3;
// Of one sample. Where objects are larger than that, their likeness is not what makes them large.
constexpr std::size_t kSampleBytes = 16 * 1024;
// Of what is asked about the beginning of a text: its version and kind.
constexpr std::size_t kHeadBytes = 256;

std::string joined(const std::vector<std::string_view>& samples) {
  std::string out;
  for (const std::string_view sample : samples) out += sample.substr(0, kSampleBytes);
  return out;
}

std::string common_head(const std::vector<std::string_view>& samples) {
  if (samples.empty()) return {};
  std::string_view head = samples.front().substr(0, kHeadBytes);
  for (const std::string_view sample : samples) {
    const auto differ = std::ranges::mismatch(head, sample).in1;
    head = head.substr(0, static_cast<std::size_t>(differ - head.begin()));
  }
  return std::string(head);
}

ZSTD_DCtx* unpacking() {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  static thread_local const std::unique_ptr<ZSTD_DCtx, Free> kContext(ZSTD_createDCtx());
  SKIFF_CHECK(kContext != nullptr, "there is memory for unpacking");
  return kContext.get();
}

}  // namespace

Dictionary::Dictionary(const std::vector<std::string_view>& samples)
    : content_(joined(samples)),
      head_(common_head(samples)),
      ready_(ZSTD_createDDict(content_.data(), content_.size())) {
  SKIFF_CHECK(ready_ != nullptr, "there is memory for a dictionary");
}

void Dictionary::unpack(std::string_view packed, char* out, std::size_t size) const {
  const std::size_t got = ZSTD_decompress_usingDDict(unpacking(), out, size, packed.data(),
                                                     packed.size(), ready_.get());
  SKIFF_CHECK(got == size, fmt::format("what was packed can be unpacked: {}",
                                       ZSTD_isError(got) ? ZSTD_getErrorName(got) : "too short"));
}

Packer::Packer(std::shared_ptr<const Dictionary> dictionary)
    : dictionary_(std::move(dictionary)),
      ready_(
          ZSTD_createCDict(dictionary_->content().data(), dictionary_->content().size(), kLevel)),
      context_(ZSTD_createCCtx()) {
  SKIFF_CHECK(ready_ != nullptr && context_ != nullptr, "there is memory for packing");
}

std::string_view Packer::pack(std::string_view text) {
  room_.resize(std::max(room_.size(), ZSTD_compressBound(text.size())));
  const std::size_t size = ZSTD_compress_usingCDict(context_.get(), room_.data(), room_.size(),
                                                    text.data(), text.size(), ready_.get());
  SKIFF_CHECK(!ZSTD_isError(size),
              fmt::format("any text can be packed: {}", ZSTD_getErrorName(size)));
  return std::string_view(room_).substr(0, size);
}

}  // namespace skiff::store
