// Seeds that follow from one seed, so that a run can be repeated.
#pragma once

#include "base/random.h"
#include "env/env.h"

namespace skiff::env::sim {

class Entropy final : public env::Entropy {
 public:
  explicit Entropy(std::uint64_t seed) : random_(seed) {}

  std::uint64_t seed() override { return random_.next(); }

 private:
  Random random_;
};

}  // namespace skiff::env::sim
