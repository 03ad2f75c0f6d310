// What `skiff label` and `skiff annotate` change: KEY=VALUE sets, KEY- removes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

struct MetadataChange {
  std::vector<std::pair<std::string, std::string>> set = {};
  std::vector<std::string> remove = {};
};

// Whether a word of the command line is such a change and not the name of an object.
bool is_change(std::string_view word);
Result<MetadataChange> parse_changes(const std::vector<std::string>& words);

// The merge patch for labels or annotations of an object; empty: nothing to do. Without
// `overwrite` a key that has another value is an error that names it.
Result<json::object> metadata_patch(const json::value& object, std::string_view field,
                                    const MetadataChange& change, bool overwrite);

}  // namespace skiff::cli
