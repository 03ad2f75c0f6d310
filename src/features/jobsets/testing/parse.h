// Objects of tests as JSON text.
#pragma once

#include <string_view>

#include "base/check.h"
#include "base/json.h"

namespace skiff::jobsets::testing {

inline json::value must_parse(std::string_view text) {
  Result<json::value> parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

}  // namespace skiff::jobsets::testing
