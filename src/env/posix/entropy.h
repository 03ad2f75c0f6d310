// Seeds from the kernel.
#pragma once

#include "env/env.h"

namespace skiff::env::posix {

class Entropy final : public env::Entropy {
 public:
  std::uint64_t seed() override;
};

}  // namespace skiff::env::posix
