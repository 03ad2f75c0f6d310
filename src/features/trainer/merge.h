// Putting together what a runtime says and what a job changes of it.
#pragma once

#include <string_view>

#include "base/json.h"

namespace skiff::trainer {

// As a strategic merge patch: maps are joined; lists whose entries have names are joined by name
// (volume mounts by path), others are replaced. Null changes nothing, nor does what is no map or
// list where there is one.
void merge(json::value& base, const json::value& patch);

// Sets the entries of `list` that have the same name and adds the others at its end.
void put_named(json::array& list, const json::array& entries, std::string_view key = "name");

// The list under a key, made where there is none.
json::array& array_at(json::object& object, std::string_view key);

}  // namespace skiff::trainer
