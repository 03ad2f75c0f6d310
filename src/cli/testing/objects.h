// Objects of tests as YAML text.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "base/json.h"
#include "base/yaml.h"

namespace skiff::cli::testing {

inline json::value doc(std::string_view text) {
  auto parsed = yaml::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : json::value();
}

inline Object object(std::string_view text) {
  return std::make_shared<const json::value>(doc(text));
}

}  // namespace skiff::cli::testing
