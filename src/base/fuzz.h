// What every *_fuzz.cc begins with: libFuzzer's entry, with the input as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

// SKIFF_FUZZ(text) { ... }: called with one input after another. Whatever a property demands beyond
// "it does not crash" is a SKIFF_CHECK.
#define SKIFF_FUZZ(text)                                                              \
  static void fuzz_one(std::string_view text);                                        \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_one({reinterpret_cast<const char*>(data), size});                            \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_one(std::string_view text)

namespace skiff {

// Cuts an input into parts, for code that takes several: the parts are divided by a byte 0xff,
// which no text in UTF-8 holds. The last call gives the rest.
inline std::string_view next_part(std::string_view& rest) {
  const std::size_t end = rest.find('\xff');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

}  // namespace skiff
