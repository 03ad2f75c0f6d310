#include "cli/metadata_change.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::cli {

bool is_change(std::string_view word) {
  return word.contains('=') || (word.size() > 1 && word.ends_with('-'));
}

Result<MetadataChange> parse_changes(const std::vector<std::string>& words) {
  MetadataChange out;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || word == "-") {
      return fail(Code::kBadRequest, fmt::format("\"{}\": write KEY=VALUE or KEY-", word));
    }
    if (equals != std::string::npos) {
      out.set.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else {
      out.remove.push_back(word.substr(0, word.size() - 1));
    }
  }
  for (const auto& [key, value] : out.set) {
    if (std::ranges::find(out.remove, key) != out.remove.end()) {
      return fail(Code::kBadRequest,
                  fmt::format("can not both modify and remove \"{}\" in the same command", key));
    }
  }
  return out;
}

Result<json::object> metadata_patch(const json::value& object, std::string_view field,
                                    const MetadataChange& change, bool overwrite) {
  const json::object& now = json::get_object(object, {"metadata", field});
  json::object values;
  for (const auto& [key, value] : change.set) {
    const json::value* had = now.if_contains(key);
    const std::string_view old =
        had != nullptr && had->is_string() ? json::view(had->get_string()) : std::string_view();
    if (had != nullptr && old == value) continue;
    if (had != nullptr && !overwrite) {
      return fail(Code::kConflict,
                  fmt::format("'{}' already has a value ({}), and --overwrite is false", key, old));
    }
    values[key] = value;
  }
  for (const std::string& key : change.remove) {
    if (now.contains(key)) values[key] = nullptr;
  }
  if (values.empty()) return json::object();
  return json::object{{"metadata", json::object{{field, std::move(values)}}}};
}

}  // namespace skiff::cli
