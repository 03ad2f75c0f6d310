#include "schema/openapi.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "schema/causes.h"

namespace skiff::schema {
namespace {

constexpr std::string_view kRefPrefix = "#/components/schemas/";

std::unexpected<Error> bad_schema(std::string_view path, std::string_view why) {
  return fail(Code::kInvalid, fmt::format("{}: {}", path, why));
}

class Importer {
 public:
  Result<Schema> read(const json::value& v, std::string_view path, std::size_t depth) {
    if (!v.is_object()) return bad_schema(path, "a schema must be an object");
    if (depth > limits::kJsonDepth) return bad_schema(path, "nested too deeply");
    Schema out;
    for (const auto& [key, value] : v.get_object()) {
      SKIFF_TRY(keyword(key, value, child(path, std::string_view(key)), depth, out));
    }
    flatten_ref(out);
    return out;
  }

 private:
  Result<void> keyword(std::string_view key, const json::value& v, const std::string& path,
                       std::size_t depth, Schema& out) {
    if (key == "type") return read_type(v, path, out);
    if (key == "$ref") return read_ref(v, path, out);
    if (key == "properties") return read_properties(v, path, depth, out);
    if (key == "items") return read_ptr(v, path, depth, out.items);
    if (key == "not") return read_ptr(v, path, depth, out.negated);
    if (key == "allOf") return read_list(v, path, depth, out.all_of);
    if (key == "anyOf") return read_list(v, path, depth, out.any_of);
    if (key == "oneOf") return read_list(v, path, depth, out.one_of);
    if (key == "additionalProperties") {
      if (v.is_bool()) {
        out.preserve_unknown = out.preserve_unknown || v.get_bool();
        return {};
      }
      return read_ptr(v, path, depth, out.additional);
    }
    if (key == "default") {
      out.fallback = v;
      return {};
    }
    if (key == "enum") {
      if (!v.is_array()) return bad_schema(path, "must be a list");
      out.enumeration.assign(v.get_array().begin(), v.get_array().end());
      return {};
    }
    if (key == "pattern") return read_pattern(v, path, out);
    if (read_text(key, v, out) || read_flag(key, v, out) || read_number(key, v, out)) return {};
    return read_extension(key, v, path, out);
  }

  static Result<void> read_type(const json::value& v, const std::string& path, Schema& out) {
    constexpr std::array kTypes{Type::kObject,  Type::kArray,  Type::kString,
                                Type::kInteger, Type::kNumber, Type::kBoolean};
    if (!v.is_string()) return bad_schema(path, "must be a string");
    for (const Type t : kTypes) {
      if (type_text(t) == json::view(v.get_string())) {
        out.type = t;
        return {};
      }
    }
    return bad_schema(path, fmt::format("unknown type \"{}\"", json::view(v.get_string())));
  }

  static Result<void> read_ref(const json::value& v, const std::string& path, Schema& out) {
    if (!v.is_string()) return bad_schema(path, "must be a string");
    const std::string_view text = json::view(v.get_string());
    if (!text.starts_with(kRefPrefix))
      return bad_schema(path, "must point into components.schemas");
    out.ref = text.substr(kRefPrefix.size());
    return {};
  }

  static Result<void> read_pattern(const json::value& v, const std::string& path, Schema& out) {
    if (!v.is_string()) return bad_schema(path, "must be a string");
    const RE2 re(json::view(v.get_string()), RE2::Quiet);
    if (!re.ok()) return bad_schema(path, fmt::format("not a regular expression: {}", re.error()));
    out.pattern = json::view(v.get_string());
    return {};
  }

  Result<void> read_properties(const json::value& v, const std::string& path, std::size_t depth,
                               Schema& out) {
    if (!v.is_object()) return bad_schema(path, "must be an object");
    for (const auto& [name, inner] : v.get_object()) {
      SKIFF_ASSIGN(Schema property, read(inner, entry(path, std::string_view(name)), depth + 1));
      out.properties.push_back({.name = name, .schema = std::move(property)});
    }
    std::ranges::sort(out.properties, {}, &Property::name);
    return {};
  }

  Result<void> read_ptr(const json::value& v, const std::string& path, std::size_t depth,
                        SchemaPtr& out) {
    SKIFF_ASSIGN(Schema inner, read(v, path, depth + 1));
    out = std::make_shared<const Schema>(std::move(inner));
    return {};
  }

  Result<void> read_list(const json::value& v, const std::string& path, std::size_t depth,
                         std::vector<Schema>& out) {
    if (!v.is_array()) return bad_schema(path, "must be a list");
    for (const json::value& item : v.get_array()) {
      SKIFF_ASSIGN(Schema inner, read(item, child(path, out.size()), depth + 1));
      out.push_back(std::move(inner));
    }
    return {};
  }

  static bool read_text(std::string_view key, const json::value& v, Schema& out) {
    std::string* const to = key == "format"                         ? &out.format
                            : key == "description"                  ? &out.description
                            : key == "x-kubernetes-patch-merge-key" ? &out.patch_merge_key
                            : key == "x-kubernetes-patch-strategy"  ? &out.patch_strategy
                                                                    : nullptr;
    if (to == nullptr || !v.is_string()) return false;
    *to = json::view(v.get_string());
    return true;
  }

  static bool read_flag(std::string_view key, const json::value& v, Schema& out) {
    bool* const to = key == "nullable"                               ? &out.nullable
                     : key == "exclusiveMinimum"                     ? &out.exclusive_minimum
                     : key == "exclusiveMaximum"                     ? &out.exclusive_maximum
                     : key == "uniqueItems"                          ? &out.unique_items
                     : key == "x-kubernetes-int-or-string"           ? &out.int_or_string
                     : key == "x-kubernetes-preserve-unknown-fields" ? &out.preserve_unknown
                     : key == "x-kubernetes-embedded-resource"       ? &out.embedded_resource
                                                                     : nullptr;
    if (to == nullptr || !v.is_bool()) return false;
    *to = v.get_bool();
    return true;
  }

  static bool read_number(std::string_view key, const json::value& v, Schema& out) {
    if (!v.is_number()) return false;
    const auto number = v.to_number<double>();
    std::optional<double>* const to = key == "minimum"      ? &out.minimum
                                      : key == "maximum"    ? &out.maximum
                                      : key == "multipleOf" ? &out.multiple_of
                                                            : nullptr;
    if (to != nullptr) {
      *to = number;
      return true;
    }
    std::optional<std::uint64_t>* const count = key == "minLength"       ? &out.min_length
                                                : key == "maxLength"     ? &out.max_length
                                                : key == "minItems"      ? &out.min_items
                                                : key == "maxItems"      ? &out.max_items
                                                : key == "minProperties" ? &out.min_properties
                                                : key == "maxProperties" ? &out.max_properties
                                                                         : nullptr;
    const std::optional<std::int64_t> n = json::get_int(v, {});
    if (count == nullptr || !n || *n < 0) return false;
    *count = static_cast<std::uint64_t>(*n);
    return true;
  }

  static Result<void> read_extension(std::string_view key, const json::value& v,
                                     const std::string& path, Schema& out) {
    if (key == "required") {
      if (!v.is_array()) return bad_schema(path, "must be a list");
      out.required = json::strings(v.get_array());
    } else if (key == "x-kubernetes-list-type") {
      const std::string_view text = json::get_string(v, {});
      if (text != "atomic" && text != "set" && text != "map") {
        return bad_schema(path, "must be atomic, set or map");
      }
      out.list_type = text == "map"   ? ListType::kMap
                      : text == "set" ? ListType::kSet
                                      : ListType::kAtomic;
    } else if (key == "x-kubernetes-list-map-keys") {
      if (!v.is_array()) return bad_schema(path, "must be a list");
      out.list_map_keys = json::strings(v.get_array());
    } else if (key == "x-kubernetes-map-type") {
      out.atomic_map = json::get_string(v, {}) == "atomic";
    } else {
      out.has_rules = out.has_rules || key == "x-kubernetes-validations";
      out.extra[key] = v;
    }
    return {};
  }

  // Servers write a reference with siblings as allOf with one member.
  static void flatten_ref(Schema& out) {
    if (out.type == Type::kAny && out.all_of.size() == 1 && !out.all_of[0].ref.empty()) {
      out.ref = std::move(out.all_of[0].ref);
      out.all_of.clear();
    }
  }
};

json::array string_array(const std::vector<std::string>& strings) {
  json::array out;
  for (const std::string& s : strings) out.emplace_back(json::string(s));
  return out;
}

json::array schema_array(const std::vector<Schema>& schemas) {
  json::array out;
  for (const Schema& s : schemas) out.emplace_back(to_openapi(s));
  return out;
}

void put_text(json::object& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

// Whole numbers print as such: `minimum: 1`, not `1E0`.
void put_number(json::object& out, const char* key, const std::optional<double>& n) {
  if (!n) return;
  constexpr double kExact = 9007199254740992.0;
  if (*n >= -kExact && *n <= kExact && *n == static_cast<double>(static_cast<std::int64_t>(*n))) {
    out[key] = static_cast<std::int64_t>(*n);
  } else {
    out[key] = *n;
  }
}

void put_count(json::object& out, const char* key, const std::optional<std::uint64_t>& n) {
  if (n) out[key] = *n;
}

void put_constraints(json::object& out, const Schema& s) {
  put_number(out, "minimum", s.minimum);
  put_number(out, "maximum", s.maximum);
  put_number(out, "multipleOf", s.multiple_of);
  if (s.exclusive_minimum) out["exclusiveMinimum"] = true;
  if (s.exclusive_maximum) out["exclusiveMaximum"] = true;
  put_count(out, "minLength", s.min_length);
  put_count(out, "maxLength", s.max_length);
  put_count(out, "minItems", s.min_items);
  put_count(out, "maxItems", s.max_items);
  put_count(out, "minProperties", s.min_properties);
  put_count(out, "maxProperties", s.max_properties);
  put_text(out, "pattern", s.pattern);
  if (s.unique_items) out["uniqueItems"] = true;
  if (!s.enumeration.empty()) {
    out["enum"] = json::array(s.enumeration.begin(), s.enumeration.end());
  }
  if (!s.all_of.empty()) out["allOf"] = schema_array(s.all_of);
  if (!s.any_of.empty()) out["anyOf"] = schema_array(s.any_of);
  if (!s.one_of.empty()) out["oneOf"] = schema_array(s.one_of);
  if (s.negated) out["not"] = to_openapi(*s.negated);
}

void put_extensions(json::object& out, const Schema& s) {
  if (s.int_or_string && s.builtin) {
    out["oneOf"] = json::array{{{"type", "integer"}}, {{"type", "string"}}};
  } else if (s.int_or_string) {
    out["x-kubernetes-int-or-string"] = true;
  }
  if (s.format == "quantity")
    out["oneOf"] = json::array{{{"type", "string"}}, {{"type", "number"}}};
  if (s.preserve_unknown && !s.builtin) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (s.embedded_resource) out["x-kubernetes-embedded-resource"] = true;
  if (s.type == Type::kArray && s.list_type != ListType::kAtomic) {
    out["x-kubernetes-list-type"] = s.list_type == ListType::kMap ? "map" : "set";
  }
  if (!s.list_map_keys.empty()) out["x-kubernetes-list-map-keys"] = string_array(s.list_map_keys);
  if (s.atomic_map) out["x-kubernetes-map-type"] = "atomic";
  put_text(out, "x-kubernetes-patch-merge-key", s.patch_merge_key);
  put_text(out, "x-kubernetes-patch-strategy", s.patch_strategy);
  for (const auto& [key, value] : s.extra) out[key] = value;
}

}  // namespace

Result<Schema> from_openapi(const json::value& v, std::string_view path) {
  return Importer().read(v, path, 0);
}

json::object to_openapi(const Schema& s) {
  json::object out;
  put_text(out, "description", s.description);
  if (!s.ref.empty()) {
    json::object ref{{"$ref", std::string(kRefPrefix) + s.ref}};
    if (out.empty() && !s.fallback) return ref;
    out["allOf"] = json::array{std::move(ref)};
    if (s.fallback) out["default"] = *s.fallback;
    return out;
  }
  if (s.type != Type::kAny) out["type"] = json::string(type_text(s.type));
  if (s.format != "quantity") put_text(out, "format", s.format);
  if (s.nullable) out["nullable"] = true;
  if (s.fallback) out["default"] = *s.fallback;
  if (!s.properties.empty()) {
    json::object properties;
    for (const Property& p : s.properties) properties[p.name] = to_openapi(p.schema);
    out["properties"] = std::move(properties);
  }
  if (!s.required.empty()) out["required"] = string_array(s.required);
  if (s.items) out["items"] = to_openapi(*s.items);
  if (s.additional) out["additionalProperties"] = to_openapi(*s.additional);
  put_constraints(out, s);
  put_extensions(out, s);
  return out;
}

}  // namespace skiff::schema
