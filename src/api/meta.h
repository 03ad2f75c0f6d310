// Reading and writing metadata of unstructured objects.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/kind.h"
#include "base/json.h"
#include "base/time.h"

namespace skiff::api {

std::string_view name(const json::value& object);
std::string_view ns(const json::value& object);
std::string_view uid(const json::value& object);
std::string_view kind(const json::value& object);
std::string_view api_version(const json::value& object);
std::string_view resource_version(const json::value& object);
std::uint64_t revision(const json::value& object);  // resourceVersion as a number, 0 where absent
std::string_view label(const json::value& object, std::string_view key);
std::string_view annotation(const json::value& object, std::string_view key);
bool deleting(const json::value& object);  // deletionTimestamp is set
std::optional<Time> time_at(const json::value& object,
                            std::initializer_list<std::string_view> path);
std::optional<Time> created_at(const json::value& object);

// The owner reference with controller: true, or null.
const json::object* controller_of(const json::value& object);
bool controlled_by(const json::value& object, std::string_view owner_uid);
// A controlling owner reference to `owner`, blocking its foreground deletion.
json::object owner_reference(const json::value& owner);

// status.conditions by type; null where absent.
const json::object* condition(const json::value& object, std::string_view type);
bool condition_true(const json::value& object, std::string_view type);

}  // namespace skiff::api
