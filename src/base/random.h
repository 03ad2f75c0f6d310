// Random numbers from a seed. Everything that decides takes one of these, so that a run of the
// simulator can be repeated; the real seed comes from env::Entropy.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

// xoshiro256**: small, fast, and the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next();
  // Uniform in [0, bound); bound must not be 0.
  std::uint64_t below(std::uint64_t bound);
  // True in `percent` of a hundred calls.
  bool chance(unsigned percent) { return below(100) < percent; }

  std::string uuid();                   // version 4
  std::string suffix(unsigned length);  // from the alphabet generateName uses

 private:
  std::uint64_t state_[4];
};

}  // namespace skiff
