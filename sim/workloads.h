// The workloads that skiff_sim knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/workload.h"

namespace skiff::sim {

// By name; without one, the seed chooses. Null where there is no such.
std::unique_ptr<Workload> make_workload(std::string_view name, std::uint64_t seed);

std::vector<std::string_view> workload_names();

}  // namespace skiff::sim
