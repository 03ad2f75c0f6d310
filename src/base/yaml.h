// YAML as kubectl reads and writes it: a document becomes the JSON value it stands for.
//
// Scalars resolve by the YAML 1.1 rules that Kubernetes tools use (`yes` and `on` are booleans,
// 0o17 and 017 are octal); quoted scalars stay text. Aliases are expanded, within
// limits::kYamlNodes;
// `<<` merges. A key given twice is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::yaml {

// Every document of the text; empty ones are left out.
Result<std::vector<json::value>> parse_all(std::string_view text);
// Exactly one document, or null for a text without any.
Result<json::value> parse(std::string_view text);

// As parse(), but of a key given twice the last counts; `doubled` says of each where it stands:
// line 7: key "a" already set in map
Result<json::value> parse_lenient(std::string_view text, std::vector<std::string>& doubled);

// Block style, keys in their stored order, ends with a line end.
std::string serialize(const json::value& v);

// What a plain (unquoted) scalar stands for: null, boolean, number or text.
json::value resolve_plain(std::string_view text);

}  // namespace skiff::yaml
