// Kubernetes quantities as whole thousandths: "1500m" and "1.5" are 1500, "1Ki" is 1024000.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace skiff::scheduler {

// Rounded up to a thousandth; past the range of 64 bits it stays at the largest value.
std::optional<std::int64_t> parse_milli(std::string_view text);
// A quantity as JSON has it: a string or a bare number. 0 where it is neither.
std::int64_t milli_of(const json::value& quantity);
// For people: memory in the largest binary unit that keeps it short, the rest as a decimal.
std::string show_milli(std::string_view resource, std::int64_t milli);

}  // namespace skiff::scheduler
