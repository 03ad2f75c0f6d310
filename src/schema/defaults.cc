#include "schema/defaults.h"

#include "base/limits.h"

namespace skiff::schema {
namespace {

void fill(const Registry& registry, const Schema& place, json::value& v, std::size_t depth) {
  if (depth > limits::kJsonDepth) return;
  SchemaPtr holder;
  const Schema& s = registry.resolve(place, holder);
  if (json::array* a = v.if_array()) {
    if (!s.items) return;
    for (json::value& item : *a) fill(registry, *s.items, item, depth + 1);
    return;
  }
  json::object* o = v.if_object();
  if (o == nullptr) return;
  for (const Property& p : s.properties) {
    json::value* member = o->if_contains(p.name);
    if (p.schema.fallback) {
      if (member == nullptr) {
        member = &o->emplace(p.name, *p.schema.fallback).first->value();
      } else if (member->is_null() && !p.schema.nullable) {
        *member = *p.schema.fallback;
      }
    }
    if (member != nullptr) fill(registry, p.schema, *member, depth + 1);
  }
  if (!s.additional) return;
  for (auto& member : *o) {
    if (s.property(member.key()) == nullptr) {
      fill(registry, *s.additional, member.value(), depth + 1);
    }
  }
}

}  // namespace

void apply_defaults(const Registry& registry, const Schema& schema, json::value& value) {
  fill(registry, schema, value, 0);
}

}  // namespace skiff::schema
