// The small words of kubectl's tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"

namespace skiff::api {

// The age column: how long before now, or <unknown>.
std::string age_cell(std::optional<Time> since, std::int64_t now_s);
std::string age_cell(const json::value& object, std::int64_t now_s);  // by creationTimestamp
// The text, or <none>.
std::string or_none(std::string_view text);

}  // namespace skiff::api
