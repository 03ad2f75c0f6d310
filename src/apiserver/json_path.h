// The JSONPath subset that printer columns use: .a.b, ['a.b'], [0], [-1:], [1:3], [*],
// [?(@.type=="Ready")], with or without the surrounding braces.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

class JsonPath {
 public:
  static Result<JsonPath> parse(std::string_view text);
  // Everything the path leads to, in order; empty where it leads nowhere.
  std::vector<const json::value*> find(const json::value& root) const;

 private:
  struct Step {
    enum class Kind { kField, kIndex, kSlice, kAll, kFilter } kind = Kind::kField;
    std::string field = {};  // kField, or the filter's left side as dotted path
    std::int64_t from = 0;
    std::optional<std::int64_t> to = {};
    bool equal = true;  // kFilter: == or !=
    json::value operand = {};
  };
  static Result<Step> parse_bracket(std::string_view inside);
  static void walk(const Step& step, const json::value& at, std::vector<const json::value*>& out);

  std::vector<Step> steps_;
};

}  // namespace skiff::apiserver
