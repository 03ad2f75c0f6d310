// What one version of a kind has and another has not travels in an annotation, so that reading and
// writing back through either loses nothing.
#pragma once

#include <string_view>

#include "base/json.h"

namespace skiff::training {

// Seen by readers of v1: fields that only an older version has.
inline constexpr std::string_view kOlderFields = "training.skiff.dev/older-fields";
// Seen by readers of an older version: fields that only v1 has.
inline constexpr std::string_view kNewerFields = "training.skiff.dev/newer-fields";

// Puts the fields into the annotation; takes it away where there are none.
void keep_fields(json::value& object, std::string_view annotation, const json::object& fields);
// Takes the annotation off the object and gives what it held; empty where it cannot be read.
json::object take_fields(json::value& object, std::string_view annotation);

// Moves members of one object to another: those named, or all but those named.
json::object take_members(json::object& from, std::initializer_list<std::string_view> names);
json::object take_others(json::object& from, std::initializer_list<std::string_view> names);
// Writes every member of `fields` into `to`.
void put_back(json::object& to, const json::object& fields);

}  // namespace skiff::training
