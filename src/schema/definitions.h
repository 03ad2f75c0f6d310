// The compact text in which built-in definitions are kept. One definition is a line at column 0
// with its name and type, then a line per property, indented by one space:
//
//   io.k8s.api.core.v1.ContainerPort object
//    containerPort! i:int32
//    protocol s default="TCP"
//   io.k8s.api.core.v1.ResourceRequirements object
//    limits {@io.k8s.apimachinery.pkg.api.resource.Quantity}
//
// `!` marks a required property, `*` one that Go holds by a pointer, `~` one that Go writes even
// where it is zero, `?` a struct that Go leaves out where it is zero. Types: s string, i integer, n
// number, b boolean, o any object, x anything, int-or-string, quantity, @NAME a definition, [T] a
// list, {T} a map; :FORMAT may follow a scalar. Keywords after it: default=JSON (no spaces), lt=
// list type, lk= list map keys, mt=atomic, pk= patch merge key, ps= patch strategy.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "schema/schema.h"

namespace skiff::schema {

struct Definition {
  std::string_view name = {};
  std::string_view text = {};  // from its name to the end of its last property
};

// A view per definition; reads no more than the first word of each line.
std::vector<Definition> split_definitions(std::string_view text);
Result<Schema> read_definition(std::string_view text);

}  // namespace skiff::schema
