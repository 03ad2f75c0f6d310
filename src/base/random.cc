#include "base/random.h"

#include <fmt/format.h>

#include <bit>

#include "base/check.h"

namespace skiff {

Random::Random(std::uint64_t seed) {
  // splitmix64 spreads a small seed over the whole state, as the authors of xoshiro advise.
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  SKIFF_CHECK(bound > 0, "an empty range has no member");
  // Reject the few values that would make small results likelier than large ones.
  const std::uint64_t threshold = -bound % bound;
  std::uint64_t r = next();
  while (r < threshold) r = next();
  return r % bound;
}

std::string Random::uuid() {
  const std::uint64_t a = (next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t b = (next() & ~(std::uint64_t{3} << 62)) | (std::uint64_t{1} << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xffff,
                     b >> 48, b & 0xffff'ffff'ffff);
}

std::string Random::suffix(unsigned length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (unsigned i = 0; i < length; ++i) out += kAlphabet[below(kAlphabet.size())];
  return out;
}

}  // namespace skiff
