// A sum that detects damage, not malice: every bit of the input moves half of the bits of the sum.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace skiff::store {

class Checksum {
 public:
  void add(std::string_view bytes) {
    mix(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    std::uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
    mix(rest);
  }
  void mix(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 29;
  }
  std::int64_t value() const { return static_cast<std::int64_t>(state_); }

 private:
  std::uint64_t state_ = 0x5bd1e995;
};

}  // namespace skiff::store
