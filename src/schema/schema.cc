#include "schema/schema.h"

#include <algorithm>

namespace skiff::schema {

std::string_view type_text(Type type) {
  switch (type) {
    case Type::kAny:
      return "";
    case Type::kObject:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
  }
  return "";
}

const Schema* Schema::property(std::string_view name) const {
  const auto at = std::ranges::lower_bound(properties, name, {}, &Property::name);
  return at != properties.end() && at->name == name ? &at->schema : nullptr;
}

Schema& Schema::add_property(std::string_view name) {
  auto at = std::ranges::lower_bound(properties, name, {}, &Property::name);
  if (at == properties.end() || at->name != name) {
    at = properties.insert(at, {.name = std::string(name)});
  }
  return at->schema;
}

bool Schema::requires_property(std::string_view name) const {
  return std::ranges::find(required, name) != required.end();
}

}  // namespace skiff::schema
