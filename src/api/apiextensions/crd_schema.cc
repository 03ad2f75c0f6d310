#include "api/apiextensions/crd_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/apiextensions/structural.h"
#include "api/rules.h"
#include "base/limits.h"
#include "schema/causes.h"
#include "schema/check.h"
#include "schema/openapi.h"
#include "schema/prune.h"
#include "schema/registry.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::array<std::string_view, 22> kAtRoot{"description",
                                                   "type",
                                                   "format",
                                                   "title",
                                                   "maximum",
                                                   "exclusiveMaximum",
                                                   "minimum",
                                                   "exclusiveMinimum",
                                                   "maxLength",
                                                   "minLength",
                                                   "pattern",
                                                   "maxItems",
                                                   "minItems",
                                                   "uniqueItems",
                                                   "multipleOf",
                                                   "required",
                                                   "items",
                                                   "properties",
                                                   "externalDocs",
                                                   "example",
                                                   "x-kubernetes-preserve-unknown-fields",
                                                   "x-kubernetes-validations"};

// What the walk knows from the places above.
struct Place {
  bool root = false;
  bool inside_meta = false;
  std::string no_default = {};  // why defaults are not allowed here; empty: they are
};

// The rules that hold whether a schema is structural or not.
class OpenApiChecks {
 public:
  explicit OpenApiChecks(Causes& out) : out_(out) {}

  void run(const json::value& s, const std::string& path, const Place& place, std::size_t depth) {
    if (!s.is_object() || depth > limits::kJsonDepth) return;
    check_keywords(s, path, place);
    if (json::get_bool(s, {"uniqueItems"}).value_or(false)) {
      out_.push_back(schema::forbidden(
          child(path, "uniqueItems"),
          "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
    }
    descend(s, path, place, depth);
    check_map(s, path);
    check_list(s, path);
  }

  bool unsupported() const { return unsupported_; }

 private:
  void refuse(const std::string& path, std::string_view key, std::string_view why) {
    unsupported_ = true;
    out_.push_back(schema::forbidden(child(path, key), why));
  }

  void check_keywords(const json::value& s, const std::string& path, const Place& place) {
    const std::string_view type = schema_type(s);
    if (!type.empty() &&
        !is_one_of(type, {"array", "boolean", "integer", "number", "object", "string"})) {
      out_.push_back(
          schema::unsupported(child(path, "type"), json::string(type),
                              {"array", "boolean", "integer", "number", "object", "string"}));
    }
    if (present(s, {"default"}) && !place.no_default.empty()) {
      out_.push_back(
          schema::forbidden(child(path, "default"), "must not be set " + place.no_default));
    }
    for (const std::string_view key :
         {"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
      if (present(s, {key})) refuse(path, key, fmt::format("{} is not supported", key));
    }
    if (type == "null") {
      out_.push_back(schema::forbidden(
          child(path, "type"), "type cannot be set to null, use nullable as an alternative"));
    }
    const json::value* items = json::find(s, {"items"});
    if (items != nullptr && items->is_array()) {
      refuse(path, "items", "items must be a schema object and not an array");
    }
    if (place.inside_meta &&
        json::get_bool(s, {"x-kubernetes-embedded-resource"}).value_or(false)) {
      out_.push_back(schema::forbidden(child(path, "x-kubernetes-embedded-resource"),
                                       "must not be used inside of resource meta"));
    }
  }

  void descend(const json::value& s, const std::string& path, const Place& place,
               std::size_t depth) {
    const json::object& properties = json::get_object(s, {"properties"});
    Place below{.inside_meta = place.inside_meta, .no_default = place.no_default};
    if (const json::value* more = json::find(s, {"additionalProperties"})) {
      const bool just_true = more->is_bool() && more->get_bool();
      if (!properties.empty() && !just_true) {
        out_.push_back(schema::forbidden(child(path, "additionalProperties"),
                                         "additionalProperties and properties are mutual "
                                         "exclusive"));
      }
      Place inner = below;
      if (place.inside_meta) {
        inner.no_default = "inside additionalProperties applying to object metadata";
      }
      run(*more, child(path, "additionalProperties"), inner, depth + 1);
    }
    const bool resource =
        place.root || json::get_bool(s, {"x-kubernetes-embedded-resource"}).value_or(false);
    for (const auto& [key, inner_schema] : properties) {
      const std::string_view name = key;
      Place inner = below;
      if (resource && is_one_of(name, {"metadata", "kind", "apiVersion"})) {
        inner.inside_meta = true;
        if (place.root) inner.no_default = fmt::format("in top-level {}", name);
      }
      run(inner_schema, entry(child(path, "properties"), name), inner, depth + 1);
    }
    if (const json::value* no = json::find(s, {"not"})) {
      run(*no, child(path, "not"), below, depth + 1);
    }
    for (const std::string_view list : {"allOf", "oneOf", "anyOf"}) {
      const json::array& all = json::get_array(s, {list});
      for (std::size_t i = 0; i < all.size(); ++i) {
        run(all[i], child(child(path, list), i), below, depth + 1);
      }
    }
    if (const json::value* items = json::find(s, {"items"})) {
      run(*items, child(path, "items"), below, depth + 1);
    }
  }

  // `type` must be `wanted` where the keyword is given.
  bool check_type(const json::value& s, const std::string& path, std::string_view keyword,
                  std::string_view wanted) {
    const std::string_view type = schema_type(s);
    if (type == wanted) return true;
    const std::string why = fmt::format("must be {} if {} is specified", wanted, keyword);
    out_.push_back(type.empty() ? schema::required(child(path, "type"), why)
                                : schema::invalid(child(path, "type"), json::string(type), why));
    return false;
  }

  void check_map(const json::value& s, const std::string& path) {
    const auto keep = json::get_bool(s, {"x-kubernetes-preserve-unknown-fields"});
    if (keep && !*keep) {
      out_.push_back(schema::invalid(child(path, "x-kubernetes-preserve-unknown-fields"), false,
                                     "must be true or undefined"));
    }
    constexpr std::string_view kKey = "x-kubernetes-map-type";
    if (!present(s, {kKey})) return;
    check_type(s, path, kKey, "object");
    const std::string_view kind = json::get_string(s, {kKey});
    if (kind != "atomic" && kind != "granular") {
      out_.push_back(
          schema::unsupported(child(path, kKey), json::string(kind), {"atomic", "granular"}));
    }
  }

  void check_list(const json::value& s, const std::string& path) {
    constexpr std::string_view kKey = "x-kubernetes-list-type";
    const bool given = present(s, {kKey});
    const std::string_view kind = json::get_string(s, {kKey});
    const json::value* items = json::find(s, {"items"});
    if (given && check_type(s, path, kKey, "array") && kind == "set" && items != nullptr) {
      check_set_items(*items, path);
    }
    if (given && !is_one_of(kind, {"atomic", "set", "map"})) {
      out_.push_back(
          schema::unsupported(child(path, kKey), json::string(kind), {"atomic", "set", "map"}));
    }
    const json::array& keys = json::get_array(s, {"x-kubernetes-list-map-keys"});
    if (!keys.empty() && kind != "map") {
      constexpr std::string_view kWhy = "must be map if x-kubernetes-list-map-keys is non-empty";
      out_.push_back(given ? schema::invalid(child(path, kKey), json::string(kind), kWhy)
                           : schema::required(child(path, kKey), kWhy));
    }
    if (kind == "map") check_map_list(s, keys, items, path);
    if ((kind == "map" || kind == "set") && items != nullptr) {
      check_list_nulls(*items, kind, keys, child(path, "items"));
    }
  }

  void check_set_items(const json::value& items, const std::string& path) {
    constexpr std::string_view kWhy =
        "must be atomic as item of a list with x-kubernetes-list-type=set";
    const json::value* list = json::find(items, {"x-kubernetes-list-type"});
    if (schema_type(items) == "array" && list != nullptr &&
        json::get_string(*list, {}) != "atomic") {
      out_.push_back(schema::invalid(child(path, "items.x-kubernetes-list-type"), *list, kWhy));
    }
    if (schema_type(items) == "object" &&
        json::get_string(items, {"x-kubernetes-map-type"}) != "atomic") {
      // The value in this sentence is that of the list type.
      out_.push_back(schema::invalid(child(path, "items.x-kubernetes-map-type"),
                                     list == nullptr ? json::value() : *list, kWhy));
    }
  }

  void check_map_list(const json::value& s, const json::array& keys, const json::value* items,
                      const std::string& path) {
    const std::string keys_path = child(path, "x-kubernetes-list-map-keys");
    if (keys.empty()) {
      out_.push_back(
          schema::required(keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    if (items == nullptr) {
      out_.push_back(schema::required(child(path, "items"),
                                      "must have a schema if x-kubernetes-list-type is map"));
      return;
    }
    if (schema_type(*items) != "object") {
      out_.push_back(
          schema::invalid(child(path, "items.type"), json::string(schema_type(*items)),
                          "must be object if parent array's x-kubernetes-list-type is map"));
      return;
    }
    std::set<std::string> seen;
    for (const std::string& key : json::strings(keys)) {
      const json::value* property = json::find(s, {"items", "properties", key});
      if (property == nullptr) {
        out_.push_back(
            schema::invalid(keys_path, keys, "entries must all be names of item properties"));
      } else if (is_one_of(schema_type(*property), {"array", "object"})) {
        out_.push_back(
            schema::invalid(child(entry(child(path, "items.properties"), key), "type"),
                            json::string(schema_type(*items)),
                            "must be a scalar type if parent array's x-kubernetes-list-type is "
                            "map"));
      }
      if (!seen.insert(key).second) {
        out_.push_back(schema::invalid(keys_path, keys, "must not contain duplicate entries"));
      }
    }
  }

  void check_list_nulls(const json::value& items, std::string_view kind, const json::array& keys,
                        const std::string& path) {
    if (json::get_bool(items, {"nullable"}).value_or(false)) {
      out_.push_back(schema::forbidden(
          child(path, "nullable"),
          fmt::format("cannot be nullable when x-kubernetes-list-type is {}", kind)));
    }
    if (kind != "map") return;
    const auto wanted = json::strings(json::get_array(items, {"required"}));
    for (const std::string& key : json::strings(keys)) {
      const json::value* property = json::find(items, {"properties", key});
      if (property == nullptr) continue;
      const std::string at = entry(child(path, "properties"), key);
      if (std::ranges::count(wanted, key) == 0 && !present(*property, {"default"})) {
        out_.push_back(schema::required(child(at, "default"),
                                        "this property is in x-kubernetes-list-map-keys, so it "
                                        "must have a default or be a required property"));
      }
      if (json::get_bool(*property, {"nullable"}).value_or(false)) {
        out_.push_back(schema::forbidden(
            child(at, "nullable"),
            "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"));
      }
    }
  }

  Causes& out_;
  bool unsupported_ = false;
};

// Every default fits the schema at its place and has nothing that would be pruned.
void check_defaults(const json::value& s, const std::string& path, std::size_t depth, Causes& out) {
  if (!s.is_object() || depth > limits::kJsonDepth) return;
  static const schema::Registry kNone;
  if (present(s, {"default"})) {
    const json::value& value = *json::find(s, {"default"});
    const std::string at = child(path, "default");
    if (const auto read = schema::from_openapi(s, path)) {
      json::value pruned = value;
      schema::prune(kNone, *read, pruned);
      if (pruned != value) {
        out.push_back(schema::invalid(at, value, "must not have unknown fields"));
      }
      // The real server asks what is wrong with the value alone, which has no name of its own.
      for (Cause& cause : schema::check(kNone, *read, value)) {
        cause.field = cause.field.empty() ? at : child(at, std::string_view(cause.field));
        out.push_back(std::move(cause));
      }
    }
  }
  for (const auto& [key, inner] : json::get_object(s, {"properties"})) {
    check_defaults(inner, entry(child(path, "properties"), std::string_view(key)), depth + 1, out);
  }
  for (const std::string_view key : {"items", "additionalProperties"}) {
    if (const json::value* inner = json::find(s, {key})) {
      check_defaults(*inner, child(path, key), depth + 1, out);
    }
  }
}

void check_root(const json::value& s, std::string_view path, Causes& out) {
  for (const auto& [key, value] : s.get_object()) {
    const std::string_view name = key;
    if (name == "type" && schema_type(s) != "object") {
      out.push_back(schema::invalid(child(path, "type"), value,
                                    "only \"object\" is allowed as the type at the root of the "
                                    "schema if the status subresource is enabled"));
      return;
    }
    if (std::ranges::find(kAtRoot, name) != kAtRoot.end()) continue;
    out.push_back(schema::invalid(
        std::string(path), s,
        "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
        "MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items "
        "Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed "
        "at the root of the schema if the status subresource is enabled"));
    return;
  }
}

}  // namespace

void check_crd_schema(const json::value& s, std::string_view path, bool has_status, Causes& out) {
  if (!s.is_object()) return;
  if (has_status) check_root(s, path, out);
  if (json::get_bool(s, {"nullable"}).value_or(false)) {
    out.push_back(
        schema::forbidden(child(path, "nullable"), "nullable cannot be true at the root"));
  }
  Causes general;
  OpenApiChecks checks(general);
  checks.run(s, std::string(path), {.root = true}, 0);
  // What cannot be made structural at all is not complained about twice.
  if (!checks.unsupported()) {
    Causes structural;
    check_structural(s, path, structural);
    if (structural.empty()) check_defaults(s, std::string(path), 0, structural);
    std::ranges::move(structural, std::back_inserter(out));
  }
  std::ranges::move(general, std::back_inserter(out));
}

bool schema_mentions(const json::value& s, std::string_view keyword) {
  if (const json::array* list = s.if_array()) {
    return std::ranges::any_of(*list,
                               [&](const json::value& v) { return schema_mentions(v, keyword); });
  }
  if (!s.is_object()) return false;
  if (present(s, {keyword})) return true;
  for (const std::string_view key :
       {"items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"}) {
    const json::value* inner = json::find(s, {key});
    if (inner != nullptr && schema_mentions(*inner, keyword)) return true;
  }
  return std::ranges::any_of(json::get_object(s, {"properties"}), [&](const auto& member) {
    return schema_mentions(member.value(), keyword);
  });
}

}  // namespace skiff::api
