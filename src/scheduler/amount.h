// Amounts of a resource as whole thousandths, whatever the resource: 1.5 CPUs are 1500.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace skiff::scheduler {

// A quantity as JSON has it; 0 where it is none. The API server has refused those.
std::int64_t milli_of(const json::value& quantity);
// For people: memory in the largest binary unit that keeps it short, the rest as a decimal.
std::string show_milli(std::string_view resource, std::int64_t milli);

}  // namespace skiff::scheduler
