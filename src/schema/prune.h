// Fields that a schema does not know, and fields given twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

// Removes what the schema does not know and gives the paths of what was removed, for
// fieldValidation; of the first limits::kNamedFields. apiVersion, kind and metadata of the object
// itself and of embedded ones are known always.
std::vector<std::string> prune(const Registry& registry, const Schema& schema, json::value& object);
// Removes members that are null where the schema allows no null and has no default. Built-in
// schemas are left alone: for them null is as good as absent.
void prune_nulls(const Registry& registry, const Schema& schema, json::value& object);

// `duplicate field "spec.b"` of each of the first limits::kNamedFields keys that stands twice in
// one object of a JSON text. The text must have been parsed before.
std::vector<std::string> duplicate_fields(std::string_view json_text);

// With `unknown field "spec.a"` behind: the texts of warnings, and joined the reason of a strict
// refusal.
std::vector<std::string> field_warnings(std::vector<std::string> duplicated,
                                        const std::vector<std::string>& unknown);
// The same in the order of a JSON text, where nobody looks into what is unknown.
std::vector<std::string> field_warnings(std::string_view json_text,
                                        const std::vector<std::string>& unknown);
Error strict_error(std::string_view kind, std::string_view version,
                   const std::vector<std::string>& warnings);

}  // namespace skiff::schema
