// Kubernetes quantities (500m, 2, 1Gi, 1e3) as whole numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"

namespace skiff::node {

// In thousandths, rounded up, at most what fits. Accepts strings and plain numbers. Nothing where
// the text is no quantity.
std::optional<std::int64_t> milli_quantity(const json::value& quantity);
std::optional<std::int64_t> milli_quantity(std::string_view text);
// Rounded up to whole units.
std::optional<std::int64_t> whole_quantity(const json::value& quantity);

}  // namespace skiff::node
