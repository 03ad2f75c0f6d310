// The texts and patches of `skiff edit`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

// The object as YAML below a comment that says what to do and, where there is one, what was wrong
// with the last try.
std::string edit_buffer(const json::value& object, std::string_view problem);
// The same comment above text that a person has typed, whatever it is; an older one is replaced.
std::string with_problem(std::string_view text, std::string_view problem);
// What a person left in the editor. Null: nothing but comments, so nothing is wanted.
Result<json::value> read_edit(std::string_view text);

// The merge patch that leads from one to the other: lists are replaced whole.
json::object merge_diff(const json::object& before, const json::object& after);
// RFC 7386.
void merge_into(json::value& target, const json::value& patch);

}  // namespace skiff::cli
