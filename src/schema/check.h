// What is wrong with a value, by its schema.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

// Types and constraints. A built-in schema is checked for types only where it is the root, as the
// Kubernetes server does it (its kind's validate() does the rest), and for types and required
// fields where it stands inside another (a pod template in a custom resource). At most a hundred
// causes.
std::vector<Cause> check(const Registry& registry, const Schema& schema, const json::value& value,
                         std::string_view path = {});

// The same as what the server answers: 400 with a sentence for a built-in kind, which could not be
// decoded; 422 with causes for any other. `path` is where in an object of `kind` it stands.
Result<void> check_object(const Registry& registry, const Schema& schema, const json::value& object,
                          std::string_view kind, std::string_view group, std::string_view version,
                          std::string_view path = {});

// True where `text` matches anywhere. Compiled patterns are kept. A bad pattern matches nothing.
bool matches_pattern(const std::string& pattern, std::string_view text);
// What is wrong with a pattern; empty for a good one.
std::string pattern_error(const std::string& pattern);

}  // namespace skiff::schema
