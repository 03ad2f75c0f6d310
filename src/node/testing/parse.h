// Objects of tests as JSON text.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "base/json.h"

namespace skiff::node {

inline json::value parse(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}

}  // namespace skiff::node
