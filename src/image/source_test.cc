#include "image/source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

#include "image/test_image.h"

namespace skiff::image {
namespace {

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

Result<std::string> unpacked(const std::string& bytes, std::size_t piece) {
  const auto raw = string_source(bytes);
  SKIFF_ASSIGN(const auto plain, decompressed(*raw));
  std::string out, buffer(piece, '\0');
  while (true) {
    SKIFF_ASSIGN(const std::size_t n, plain->read(buffer.data(), buffer.size()));
    if (n == 0) return out;
    out.append(buffer, 0, n);
  }
}

std::string long_text() {
  std::string out;
  for (int i = 0; i < 60000; ++i) out += std::to_string(i * 7919) + "\n";
  return out;
}

TEST(Decompressed, GzipZstdAndPlainComeOutTheSame) {
  const std::string text = long_text();
  for (const std::size_t piece : {1U, 100U, 1000000U}) {
    if (piece == 1) {
      EXPECT_EQ(unpacked(gzip("short"), piece).value_or(""), "short");
      EXPECT_EQ(unpacked(zstd("short"), piece).value_or(""), "short");
      continue;
    }
    EXPECT_EQ(unpacked(text, piece).value_or(""), text);
    EXPECT_EQ(unpacked(gzip(text), piece).value_or(""), text) << piece;
    EXPECT_EQ(unpacked(zstd(text), piece).value_or(""), text) << piece;
  }
}

TEST(Decompressed, SeveralMembersAreOneText) {
  EXPECT_EQ(unpacked(gzip("one ") + gzip("two"), 100).value_or(""), "one two");
  EXPECT_EQ(unpacked(zstd("one ") + zstd("two"), 100).value_or(""), "one two");
}

TEST(Decompressed, WhatBreaksOffOrIsBrokenIsAnError) {
  const std::string text = long_text();
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    EXPECT_FALSE(unpacked(whole.substr(0, whole.size() - 5), 4096));
    EXPECT_FALSE(unpacked(whole.substr(0, 20), 4096));
    std::string broken = whole;
    for (std::size_t i = broken.size() / 2; i < broken.size() / 2 + 40; ++i) broken[i] ^= 0x55;
    EXPECT_FALSE(unpacked(broken, 4096));
  }
}

TEST(Decompressed, ShortAndEmptyTextsAreThemselves) {
  for (const char* text : {"", "a", "abc"}) EXPECT_EQ(unpacked(text, 10).value_or("?"), text);
}

TEST(HashedSource, CountsWhatNobodyReadToo) {
  const auto raw = string_source("hello");
  HashedSource hashed(*raw);
  char two[2];
  ASSERT_EQ(hashed.read(two, 2).value_or(0), 2U);
  EXPECT_EQ(hashed.finish().value_or(""), testing::digest_of("hello"));
}

}  // namespace
}  // namespace skiff::image
