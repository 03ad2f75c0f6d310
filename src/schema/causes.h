// The sentences in which Kubernetes says what is wrong with a field, and the error that carries
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::schema {

Cause required(std::string path, std::string_view detail = {});
Cause invalid(std::string path, const json::value& value, std::string_view detail);
// A value of another type; reads as invalid().
Cause type_invalid(std::string path, const json::value& value, std::string_view detail);
// Where the value is not shown.
Cause invalid_unshown(std::string path, std::string_view detail);
Cause unsupported(std::string path, const json::value& value,
                  const std::vector<std::string>& supported);
Cause duplicate(std::string path, const json::value& value);
Cause forbidden(std::string path, std::string_view detail);
Cause not_found(std::string path, const json::value& value);
Cause too_long(std::string path, std::size_t most);
Cause too_many(std::string path, std::size_t have, std::size_t most);

// 422: `Pod "web" is invalid: spec.containers: Required value`. A cause's message does not repeat
// its field, as in a Status; the sentence joins both.
Error invalid_error(std::string_view kind, std::string_view group, std::string_view name,
                    std::vector<Cause> causes);

// The paths of these are cut where they become too long (limits::kFieldPathBytes).
// base.name, or name alone at the top.
std::string child(std::string_view base, std::string_view name);
// base[3]
std::string child(std::string_view base, std::size_t index);
void append_child(std::string& base, std::string_view name);
void append_child(std::string& base, std::size_t index);
// base[key], for maps whose keys are the user's.
std::string entry(std::string_view base, std::string_view key);

}  // namespace skiff::schema
