// How a Go program prints a value, and what it says of one that does not fit its types. Parts of
// such texts stand in the sentences of a Kubernetes server.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

// map[a:1 b:[x y] c:<nil>]
std::string go_text(const json::value& value);

// What keeps the value from being put into the Go type that the schema describes: "cannot restore
// slice from map". Nothing where it fits, or where the type reads its JSON itself.
std::optional<std::string> restore_error(const Registry& registry, const Schema& schema,
                                         const json::value& value);

}  // namespace skiff::schema
