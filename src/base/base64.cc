#include "base/base64.h"

#include <array>
#include <cstdint>

namespace skiff::base64 {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> out{};
  out.fill(-1);
  for (std::size_t i = 0; i < kBase64Alphabet.size(); ++i) {
    out[static_cast<unsigned char>(kBase64Alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return out;
}

constexpr std::array<std::int8_t, 256> kValues = make_values();

}  // namespace

std::string encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= n ? kBase64Alphabet[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> decode(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  std::size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      out += static_cast<char>(group >> 16 & 255);
      out += static_cast<char>(group >> 8 & 255);
      out += static_cast<char>(group & 255);
      group = 0;
      digits = 0;
    }
  }
  if (digits == 0) return padding == 0 ? std::optional(std::move(out)) : std::nullopt;
  if (digits == 1 || digits + padding != 4) return std::nullopt;
  group <<= 6 * (4 - digits);
  out += static_cast<char>(group >> 16 & 255);
  if (digits == 3) out += static_cast<char>(group >> 8 & 255);
  return out;
}

}  // namespace skiff::base64
