// How server-side apply sees one place of an object: a scalar, a list or a map, whole or by items.
// Where no schema says it, the value does: maps by their fields, lists whole.
#pragma once

#include <optional>
#include <string_view>

#include "schema/field_path.h"
#include "schema/registry.h"
#include "schema/schema.h"

namespace skiff::schema {

struct TypedPlace {
  // kDeduced: by the value. kOpaque: the same, but maps count as one value, too.
  enum class Mode : std::uint8_t { kSchema, kDeduced, kOpaque };

  const Schema* schema = nullptr;  // kSchema; must outlive the place
  Mode mode = Mode::kSchema;
  bool preserve = false;  // something around it keeps unknown fields
  bool resource = false;  // an API object: its metadata is known whatever the schema says

  static TypedPlace of(const Schema& schema, bool preserve = false);
  static TypedPlace deduced() { return {.mode = Mode::kDeduced}; }
  static TypedPlace opaque() { return {.mode = Mode::kOpaque}; }
};

enum class Shape : std::uint8_t { kScalar, kList, kMap };

// A place whose reference has been followed. Places it gives are valid as long as it is.
class Typed {
 public:
  Typed(const Registry& registry, const TypedPlace& place);

  bool allows(Shape shape) const;
  // As which shape a value here is taken; null and misfits are taken as the first that is allowed.
  Shape shape_of(const json::value& v) const;

  bool atomic_list() const;
  bool atomic_map() const;
  TypedPlace items() const;
  // A field that the schema names. Other keys are the user's own.
  bool declares(std::string_view name) const;
  // Nothing where the schema has no such field and keeps no unknown ones.
  std::optional<TypedPlace> member(std::string_view name) const;
  // A map of which the schema says nothing at all.
  bool untyped_map() const;

  // How an item of a list that is seen by its items is named. The error is what the real server
  // says about an item without its keys.
  Result<PathElement> element_of(const json::value& item) const;
  const Schema& schema() const { return *schema_; }
  TypedPlace::Mode mode() const { return place_.mode; }

 private:
  std::optional<json::value> key_default(const std::string& name) const;

  const Registry& registry_;
  TypedPlace place_;
  SchemaPtr holder_;
  const Schema* schema_;
};

}  // namespace skiff::schema
