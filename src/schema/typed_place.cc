#include "schema/typed_place.h"

#include <fmt/format.h>

namespace skiff::schema {
namespace {

using Mode = TypedPlace::Mode;

// Values of this type are kept as they came, so nobody owns a part of one.
constexpr std::string_view kRawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension";

const Schema& anything() {
  static const Schema kAnything;
  return kAnything;
}

const Schema& metadata() {
  static const Schema kMetadata{.ref = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"};
  return kMetadata;
}

const Schema& text() {
  static const Schema kText{.type = Type::kString};
  return kText;
}

bool names_type(std::string_view name) { return name == "apiVersion" || name == "kind"; }

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ' ';
    out += json::serialize(json::string(name));
  }
  return "[" + out + "]";
}

}  // namespace

TypedPlace TypedPlace::of(const Schema& schema, bool preserve) {
  if (schema.ref == kRawExtension) return opaque();
  // What a definition holds does not depend on who refers to it.
  return {.schema = &schema, .preserve = preserve && schema.ref.empty()};
}

Typed::Typed(const Registry& registry, const TypedPlace& place)
    : registry_(registry), place_(place), schema_(&anything()) {
  if (place_.mode != Mode::kSchema || place_.schema == nullptr) return;
  schema_ = &registry.resolve(*place_.schema, holder_);
  place_.preserve = place_.preserve || schema_->preserve_unknown;
  place_.resource = place_.resource || schema_->embedded_resource;
}

bool Typed::allows(Shape shape) const {
  if (place_.mode != Mode::kSchema) return true;
  switch (schema_->type) {
    case Type::kObject:
      return shape == Shape::kMap;
    case Type::kArray:
      return shape == Shape::kList;
    case Type::kAny:
      return shape == Shape::kScalar || (schema_->format.empty() && !schema_->int_or_string);
    default:
      return shape == Shape::kScalar;
  }
}

Shape Typed::shape_of(const json::value& v) const {
  if (v.is_object() && allows(Shape::kMap)) return Shape::kMap;
  if (v.is_array() && allows(Shape::kList)) return Shape::kList;
  if (!v.is_structured() && !v.is_null() && allows(Shape::kScalar)) return Shape::kScalar;
  if (allows(Shape::kMap)) return Shape::kMap;
  return allows(Shape::kScalar) ? Shape::kScalar : Shape::kList;
}

bool Typed::atomic_list() const {
  return place_.mode != Mode::kSchema || schema_->list_type == ListType::kAtomic;
}

bool Typed::atomic_map() const {
  if (place_.mode != Mode::kSchema) return place_.mode == Mode::kOpaque;
  return schema_->atomic_map || (place_.schema != nullptr && place_.schema->atomic_map);
}

TypedPlace Typed::items() const {
  if (place_.mode != Mode::kSchema || schema_->items == nullptr) return TypedPlace::opaque();
  return TypedPlace::of(*schema_->items, place_.preserve);
}

bool Typed::declares(std::string_view name) const {
  if (place_.resource && (name == "metadata" || names_type(name))) return true;
  return place_.mode == Mode::kSchema && schema_->property(name) != nullptr;
}

std::optional<TypedPlace> Typed::member(std::string_view name) const {
  if (place_.resource && name == "metadata") return TypedPlace::of(metadata());
  if (place_.mode == Mode::kDeduced) return TypedPlace::deduced();
  if (place_.mode == Mode::kOpaque) return TypedPlace::opaque();
  if (const Schema* p = schema_->property(name)) return TypedPlace::of(*p, place_.preserve);
  if (place_.resource && names_type(name)) return TypedPlace::of(text());
  if (schema_->additional != nullptr) return TypedPlace::of(*schema_->additional, place_.preserve);
  if (place_.preserve || schema_->properties.empty()) return TypedPlace::deduced();
  return std::nullopt;
}

bool Typed::untyped_map() const {
  if (place_.mode != Mode::kSchema) return true;
  return schema_->properties.empty() && schema_->additional == nullptr && !place_.resource;
}

std::optional<json::value> Typed::key_default(const std::string& name) const {
  const Typed item(registry_, items());
  const Schema* property = item.schema().property(name);
  if (property == nullptr) return std::nullopt;
  if (property->fallback) return property->fallback;
  // The server's own types are structs, whose plain fields are never absent.
  if (!property->builtin || !item.schema().requires_property(name)) return std::nullopt;
  if (property->type == Type::kString) return json::value(json::string());
  if (property->type == Type::kInteger) return json::value(0);
  return std::nullopt;
}

Result<PathElement> Typed::element_of(const json::value& item) const {
  if (schema_->list_type == ListType::kSet) {
    if (item.is_object()) {
      return fail(Code::kInvalid, "associative list without keys has an element that's a map type");
    }
    if (item.is_array()) {
      return fail(Code::kInvalid, "not supported: associative list with lists as elements");
    }
    if (item.is_null()) {
      return fail(Code::kInvalid,
                  "associative list without keys has an element that's an explicit null");
    }
    return PathElement::value(item);
  }
  if (item.is_null()) {
    return fail(Code::kInvalid, "associative list with keys may not have a null element");
  }
  if (!item.is_object()) {
    return fail(Code::kInvalid, "associative list with keys may not have non-map elements");
  }
  std::vector<std::pair<std::string, json::value>> keys;
  keys.reserve(schema_->list_map_keys.size());
  for (const std::string& name : schema_->list_map_keys) {
    if (const json::value* given = item.get_object().if_contains(name)) {
      keys.emplace_back(name, *given);
    } else if (auto fallback = key_default(name)) {
      keys.emplace_back(name, std::move(*fallback));
    }
  }
  if (keys.empty()) {
    return fail(Code::kInvalid,
                fmt::format("associative list with keys has an element that omits all key fields "
                            "{} (and doesn't have default values for any key fields)",
                            quoted_list(schema_->list_map_keys)));
  }
  return PathElement::key(std::move(keys));
}

}  // namespace skiff::schema
