// The workloads that skiff_sim knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "sim/workload.h"

namespace skiff::sim {

// By name; without one, the seed chooses. Null where there is no such.
std::unique_ptr<Workload> make_workload(std::string_view name, std::uint64_t seed);

}  // namespace skiff::sim
