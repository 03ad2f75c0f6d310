// Short ways to ask a kind what it makes of a text, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"

namespace skiff::api::testing {

using Lines = std::vector<std::string>;

inline constexpr std::int64_t kNow = 1'700'000'300;  // 2023-11-14T22:18:20Z

inline json::value parsed(std::string_view text) {
  auto v = json::parse(text);
  EXPECT_TRUE(v) << text;
  return v ? *v : json::value();
}

inline json::value defaulted(const Kind& kind, const std::string& text) {
  json::value v = parsed(text);
  if (kind.set_defaults != nullptr) kind.set_defaults(v);
  return v;
}

// "field: message" of every cause. On create also after prepare().
inline Lines complaints(const Kind& kind, const std::string& text, const json::value* old = nullptr,
                        std::string_view subresource = {}) {
  json::value v = defaulted(kind, text);
  if (kind.prepare != nullptr) kind.prepare(v, {.old = old, .subresource = subresource});
  Lines out;
  for (const Cause& c : kind.validate(v, {.old = old, .subresource = subresource})) {
    out.push_back(c.field + ": " + c.message);
  }
  return out;
}

inline Lines warned(const Kind& kind, const std::string& text, const json::value* old = nullptr) {
  return kind.warnings(parsed(text), {.old = old});
}

inline std::string cells(const Kind& kind, const std::string& text) {
  const json::array out = kind.cells(parsed(text), kNow);
  EXPECT_EQ(out.size(), kind.columns.size());
  return json::serialize(out);
}

}  // namespace skiff::api::testing
