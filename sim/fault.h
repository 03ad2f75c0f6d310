// Something that goes wrong. One file for each in sim/faults/, one line in sim/faults.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/random.h"

namespace skiff::sim {

class World;

struct Fault {
  std::string_view name;
  // Called now and then while faults last: makes it happen once, or changes how much of it there
  // is.
  void (*strike)(World& world, Random& random);
};

std::span<const Fault* const> all_faults();

}  // namespace skiff::sim
