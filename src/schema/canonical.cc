#include "schema/canonical.h"

#include "base/limits.h"
#include "base/quantity.h"
#include "base/time.h"

namespace skiff::schema {
namespace {

bool is_time(const Schema& s) { return s.type == Type::kString && s.format == "date-time"; }
bool is_struct(const Schema& s) { return s.type == Type::kObject && !s.properties.empty(); }
// Raw JSON, of which the server knows nothing.
bool is_raw(const Schema& s) { return s.preserve_unknown; }

// True where a Go value of this type that holds `v` is the same as one that holds nothing.
bool is_zero(const Schema& s, const json::value& v) {
  if (s.int_or_string) return v == 0 || (v.is_string() && v.get_string().empty());
  switch (s.type) {
    case Type::kAny:
      return false;
    case Type::kObject:
      return !is_raw(s) && v.is_object() && v.get_object().empty();
    case Type::kArray:
      return v.is_array() && v.get_array().empty();
    case Type::kString:
      return v.is_string() && v.get_string().empty();
    case Type::kInteger:
    case Type::kNumber:
      return v.is_number() && v.to_number<double>() == 0;
    case Type::kBoolean:
      return v.is_bool() && !v.get_bool();
  }
  return false;
}

void canonical_scalar(const Schema& place, const Schema& s, json::value& v) {
  if (s.format == "quantity") {
    if (const Result<Quantity> q = Quantity::from_json(v)) v = q->text();
  } else if (is_time(s) && v.is_string()) {
    if (const auto t = parse_time(json::view(v.get_string()))) {
      v = place.ref.ends_with("MicroTime") ? rfc3339_micro(*t) : rfc3339(*t);
    }
  }
}

class Normalizer {
 public:
  explicit Normalizer(const Registry& registry) : registry_(registry) {}

  // True where `v` is zero once it is normal, and no pointer tells that from absent.
  bool run(const Schema& place, json::value& v, std::size_t depth) {
    if (depth > limits::kJsonDepth) return false;
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    if (is_raw(s)) return false;
    if (json::object* o = v.if_object()) {
      members(s, *o, depth);
    } else if (json::array* a = v.if_array(); a != nullptr && s.items) {
      for (json::value& item : *a) element(*s.items, item, depth);
    } else {
      canonical_scalar(place, s, v);
    }
    const bool written = place.always && (v.is_array() || (v.is_object() && s.additional));
    return !place.pointer && !written && is_zero(s, v);
  }

 private:
  void members(const Schema& s, json::object& o, std::size_t depth) {
    if (s.additional) {
      for (auto& member : o) element(*s.additional, member.value(), depth);
      if (resolved_format(*s.additional) == "quantity") {
        for (auto& member : o) in_milli(member.value());
      }
      return;
    }
    for (const Property& p : s.properties) {
      const auto at = o.find(p.name);
      if (at == o.end()) continue;
      if (at->value().is_null() || run(p.schema, at->value(), depth + 1)) o.stable_erase(at);
    }
  }

  // A map of quantities is a list of resources, and those are counted in thousandths.
  static void in_milli(json::value& v) {
    if (const Result<Quantity> q = Quantity::from_json(v)) v = q->in_milli().text();
  }
  std::string resolved_format(const Schema& place) const {
    SchemaPtr holder;
    return registry_.resolve(place, holder).format;
  }

  // Of a list or map: null is a zero value, and zero values stay.
  void element(const Schema& place, json::value& v, std::size_t depth) {
    if (v.is_null()) {
      SchemaPtr holder;
      const Schema& s = registry_.resolve(place, holder);
      if (s.type == Type::kString) v = "";
      if (is_struct(s)) v.emplace_object();
    }
    run(place, v, depth + 1);
  }

  const Registry& registry_;
};

class Completer {
 public:
  Completer(const Registry& registry, Empty empty) : registry_(registry), empty_(empty) {}

  void run(const Schema& place, json::value& v, std::size_t depth) {
    if (depth > limits::kJsonDepth) return;
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    if (json::array* a = v.if_array(); a != nullptr && s.items) {
      for (json::value& item : *a) run(*s.items, item, depth + 1);
    }
    json::object* o = v.if_object();
    if (o == nullptr) return;
    if (s.additional) {
      for (auto& member : *o) run(*s.additional, member.value(), depth + 1);
    }
    for (const Property& p : s.properties) property(p, *o, depth);
  }

 private:
  void property(const Property& p, json::object& o, std::size_t depth) {
    SchemaPtr holder;
    const Schema& s = registry_.resolve(p.schema, holder);
    const auto at = o.find(p.name);
    if (at != o.end() && !at->value().is_null()) {
      run(p.schema, at->value(), depth + 1);
      const bool list_or_map = s.type == Type::kArray || s.additional;
      if (!list_or_map || p.schema.pointer || !is_zero(s, at->value())) return;
      if (p.schema.always && empty_ == Empty::kStays) return;
      o.stable_erase(at);
    } else if (at != o.end()) {
      o.stable_erase(at);
    }
    if (std::optional<json::value> zero = written_zero(p.schema, s)) {
      run(p.schema, o.emplace(p.name, std::move(*zero)).first->value(), depth + 1);
    }
  }

  // What Go writes where nothing is: omitempty means nothing to a struct.
  static std::optional<json::value> written_zero(const Schema& place, const Schema& s) {
    if (place.omit_zero) return std::nullopt;
    const std::optional<json::value> null(std::in_place, nullptr);
    if (place.pointer) return place.always ? null : std::nullopt;
    if (is_struct(s)) return json::value(json::object());
    if (s.format == "quantity") return json::value("0");
    if (s.int_or_string) return json::value(0);
    if (is_time(s) || place.ref.ends_with(".RawExtension")) return null;
    if (!place.always) return std::nullopt;
    switch (s.type) {
      case Type::kString:
        return json::value("");
      case Type::kInteger:
      case Type::kNumber:
        return json::value(0);
      case Type::kBoolean:
        return json::value(false);
      default:
        return null;
    }
  }

  const Registry& registry_;
  const Empty empty_;
};

bool builtin(const Registry& registry, const Schema& schema) {
  SchemaPtr holder;
  return registry.resolve(schema, holder).builtin;
}

}  // namespace

void normalize(const Registry& registry, const Schema& schema, json::value& object) {
  if (builtin(registry, schema)) Normalizer(registry).run(schema, object, 0);
}

void complete(const Registry& registry, const Schema& schema, json::value& object, Empty empty) {
  if (builtin(registry, schema)) Completer(registry, empty).run(schema, object, 0);
}

}  // namespace skiff::schema
