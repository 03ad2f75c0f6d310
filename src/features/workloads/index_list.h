// Completion indexes as a Job writes them down: "0,3-5".
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace skiff::workloads {

using Indexes = std::set<std::int64_t>;

// Those below `completions`; what is no number is passed over.
Indexes parse_indexes(std::string_view text, std::int64_t completions);
std::string indexes_text(const Indexes& indexes);

}  // namespace skiff::workloads
