// What server-side apply does with values, by their schema: which fields one has, how two differ,
// one merged into another, fields taken out.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schema/field_set.h"
#include "schema/registry.h"
#include "schema/typed_place.h"

namespace skiff::schema {

class TypedFields {
 public:
  // `schema` of whole API objects; null: everything is deduced from the values.
  TypedFields(const Registry& registry, SchemaPtr schema)
      : registry_(registry), schema_(std::move(schema)) {}

  // Whether a configuration can be applied: known fields, types that fit, no item twice. The error
  // has the real server's words.
  Result<void> check(const json::value& config) const;

  // Every leaf, and every item and key that is the user's own.
  FieldSet leaf_set(const json::value& object) const;

  struct Change {
    FieldSet changed;  // added or of another value
    FieldSet removed;
  };
  // `blank` is what an object of the kind has before anything is written: what both lack is taken
  // from there. `ignored` fields are not looked at, nor what is below them.
  Change compare(const json::value& before, const json::value& after, const json::value& blank = {},
                 const FieldSet& ignored = {}) const;

  // `config` over `live`: fields of both become config's, lists keep one order.
  Result<json::value> merge(const json::value& live, const json::value& config) const;
  json::value remove(const json::value& object, const FieldSet& fields) const;

  // With the named fields that hold others; a field counts as had where anything below it is.
  FieldSet with_parents(const FieldSet& fields) const;
  // After a change of the schema: what is one value now is owned as one.
  FieldSet reconciled(const FieldSet& fields) const;

 private:
  TypedPlace root() const;

  const Registry& registry_;
  SchemaPtr schema_;
};

}  // namespace skiff::schema
