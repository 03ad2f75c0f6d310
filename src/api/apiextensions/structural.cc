#include "api/apiextensions/structural.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/rules.h"
#include "base/limits.h"
#include "schema/causes.h"
#include "schema/check.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

enum class Level { kRoot, kItem, kField };

bool schema_flag(const json::value& s, std::string_view key) {
  return json::get_bool(s, {key}).value_or(false);
}

// anyOf: [{type: integer}, {type: string}], the one form of a type inside a combination.
bool is_int_or_string(const json::value& s) {
  static const json::value kPattern =
      json::array{json::object{{"type", "integer"}}, json::object{{"type", "string"}}};
  const json::value* any = json::find(s, {"anyOf"});
  return any != nullptr && *any == kPattern;
}

class StructuralChecks {
 public:
  Causes run(const json::value& s, const std::string& path) {
    check(s, Level::kRoot, path, 0);
    complete(s, &s, path, path, 0);
    std::ranges::sort(out_, {}, [](const Cause& c) { return c.field + ": " + c.message; });
    return std::move(out_);
  }

 private:
  void need(std::string path, std::string_view why) {
    out_.push_back(schema::required(std::move(path), why));
  }
  void refuse(std::string path, std::string_view why) {
    out_.push_back(schema::forbidden(std::move(path), why));
  }

  void check(const json::value& s, Level level, const std::string& path, std::size_t depth) {
    if (!s.is_object() || depth > limits::kJsonDepth) return;
    if (schema_type(s) == "array" && !present(s, {"items"}))
      need(child(path, "items"), "must be specified");
    if (const json::value* items = json::find(s, {"items"})) {
      check(*items, Level::kItem, child(path, "items"), depth + 1);
    }
    for (const auto& [key, inner] : json::get_object(s, {"properties"})) {
      check(inner, Level::kField, entry(child(path, "properties"), std::string_view(key)),
            depth + 1);
    }
    if (const json::value* more = json::find(s, {"additionalProperties"})) {
      const std::string at = child(path, "additionalProperties");
      if (level == Level::kRoot) refuse(at, "must not be used at the root");
      check(*more, Level::kField, at, depth + 1);
      if (schema_flag(s, "x-kubernetes-embedded-resource")) {
        refuse(at, "must not be used if x-kubernetes-embedded-resource is set");
      }
    }
    check_extensions(s, path);
    check_values(s, is_int_or_string(s), path, depth);
    check_type(s, level, path);
    check_meta(s, level, path);
  }

  void check_extensions(const json::value& s, const std::string& path) {
    if (!schema_flag(s, "x-kubernetes-int-or-string")) return;
    for (const std::string_view key :
         {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
      if (!schema_flag(s, key)) continue;
      out_.push_back(schema::invalid(child(path, key), true,
                                     "must be false if x-kubernetes-int-or-string is true"));
    }
  }

  void check_type(const json::value& s, Level level, const std::string& path) {
    const std::string_view type = schema_type(s);
    const std::string at = child(path, "type");
    if (schema_flag(s, "x-kubernetes-embedded-resource") && type != "object") {
      constexpr std::string_view kWhy = "must be object if x-kubernetes-embedded-resource is true";
      out_.push_back(type.empty() ? schema::required(at, kWhy)
                                  : schema::invalid(at, json::string(type), kWhy));
    } else if (type.empty() && !schema_flag(s, "x-kubernetes-int-or-string") &&
               !schema_flag(s, "x-kubernetes-preserve-unknown-fields")) {
      need(at, level == Level::kRoot   ? "must not be empty at the root"
               : level == Level::kItem ? "must not be empty for specified array items"
                                       : "must not be empty for specified object fields");
    }
    if (level == Level::kRoot && !type.empty() && type != "object") {
      out_.push_back(schema::invalid(at, json::string(type), "must be object at the root"));
    }
  }

  void check_meta(const json::value& s, Level level, const std::string& path) {
    const bool embedded = schema_flag(s, "x-kubernetes-embedded-resource");
    const bool resource = level == Level::kRoot || embedded;
    const std::string properties = child(path, "properties");
    for (const std::string_view name : {"kind", "apiVersion"}) {
      const json::value* p = json::find(s, {"properties", name});
      if (p != nullptr && resource && schema_type(*p) != "string") {
        out_.push_back(schema::invalid(child(entry(properties, name), "type"),
                                       json::string(schema_type(*p)), "must be string"));
      }
    }
    if (const json::value* metadata = json::find(s, {"properties", "metadata"})) {
      const std::string at = entry(properties, "metadata");
      if (resource && schema_type(*metadata) != "object") {
        out_.push_back(schema::invalid(child(at, "type"), json::string(schema_type(*metadata)),
                                       "must be object"));
      }
      if (level == Level::kRoot && !only_names(*metadata)) {
        refuse(at,
               "must not specify anything other than name and generateName, but metadata is "
               "implicitly specified");
      }
    }
    if (embedded && !schema_flag(s, "x-kubernetes-preserve-unknown-fields") &&
        json::get_object(s, {"properties"}).empty()) {
      need(properties,
           "must not be empty if x-kubernetes-embedded-resource is true without "
           "x-kubernetes-preserve-unknown-fields");
    }
  }

  static bool only_names(const json::value& metadata) {
    if (!metadata.is_object()) return true;
    for (const auto& [key, value] : metadata.get_object()) {
      const std::string_view name = key;
      if (name == "type" || name == "default") continue;
      if (name != "properties" || !value.is_object()) return false;
      for (const auto& [property, ignored] : value.get_object()) {
        if (!is_one_of(property, {"name", "generateName"})) return false;
      }
    }
    return true;
  }

  void check_values(const json::value& s, bool skip_any, const std::string& path,
                    std::size_t depth) {
    const bool skip_first = !json::get_array(s, {"allOf"}).empty() &&
                            is_int_or_string(json::get_array(s, {"allOf"})[0]);
    for (const std::string_view list : {"anyOf", "allOf", "oneOf"}) {
      if (list == "anyOf" && skip_any) continue;
      const json::array& all = json::get_array(s, {list});
      for (std::size_t i = 0; i < all.size(); ++i) {
        check_nested(all[i], list == "allOf" && i == 0 && skip_first, child(child(path, list), i),
                     depth + 1);
      }
    }
    if (const json::value* no = json::find(s, {"not"})) {
      check_nested(*no, false, child(path, "not"), depth + 1);
    }
    const std::string pattern(json::get_string(s, {"pattern"}));
    if (pattern.empty()) return;
    if (const std::string wrong = schema::pattern_error(pattern); !wrong.empty()) {
      out_.push_back(
          schema::invalid(child(path, "pattern"), json::string(pattern),
                          fmt::format("must be a valid regular expression, but isn't: {}", wrong)));
    }
  }

  void check_nested(const json::value& s, bool skip_any, const std::string& path,
                    std::size_t depth) {
    if (!s.is_object() || depth > limits::kJsonDepth) return;
    check_values(s, skip_any, path, depth);
    if (const json::value* items = json::find(s, {"items"})) {
      check_nested(*items, false, child(path, "items"), depth + 1);
    }
    for (const auto& [key, inner] : json::get_object(s, {"properties"})) {
      check_nested(inner, false, entry(child(path, "properties"), std::string_view(key)),
                   depth + 1);
    }
    struct Forbidden {
      std::string_view key, why;
    };
    constexpr Forbidden kForbidden[] = {
        {"type", "must be empty to be structural"},
        {"additionalProperties", "must be undefined to be structural"},
        {"default", "must be undefined to be structural"},
        {"title", "must be empty to be structural"},
        {"description", "must be empty to be structural"},
        {"nullable", "must be false to be structural"},
        {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
        {"x-kubernetes-embedded-resource", "must be false to be structural"},
        {"x-kubernetes-int-or-string", "must be false to be structural"},
        {"x-kubernetes-list-map-keys", "must be empty to be structural"},
        {"x-kubernetes-list-type", "must be undefined to be structural"},
        {"x-kubernetes-map-type", "must be undefined to be structural"},
        {"x-kubernetes-validations", "must be empty to be structural"}};
    for (const Forbidden& f : kForbidden) {
      const json::value* v = json::find(s, {f.key});
      if (v == nullptr || v->is_null() || (v->is_bool() && !v->get_bool())) continue;
      refuse(child(path, f.key), f.why);
    }
    if (json::find(s, {"properties", "metadata"}) != nullptr) {
      refuse(entry(child(path, "properties"), "metadata"),
             "must not be specified in a nested context");
    }
  }

  // What a combination speaks of must exist outside of it: `v` is inside, `s` outside.
  void complete(const json::value& v, const json::value* s, const std::string& s_path,
                const std::string& v_path, std::size_t depth) {
    if (depth > limits::kJsonDepth) return;
    if (const json::value* no = json::find(v, {"not"})) {
      complete_nested(*no, s, s_path, child(v_path, "not"), depth + 1);
    }
    for (const std::string_view list : {"allOf", "anyOf", "oneOf"}) {
      const json::array& all = json::get_array(v, {list});
      for (std::size_t i = 0; i < all.size(); ++i) {
        complete_nested(all[i], s, s_path, child(child(v_path, list), i), depth + 1);
      }
    }
  }

  void complete_nested(const json::value& v, const json::value* s, const std::string& s_path,
                       const std::string& v_path, std::size_t depth) {
    if (s == nullptr) return need(s_path, fmt::format("because it is defined in {}", v_path));
    complete(v, s, s_path, v_path, depth);
    if (const json::value* items = json::find(v, {"items"})) {
      complete_nested(*items, json::find(*s, {"items"}), child(s_path, "items"),
                      child(v_path, "items"), depth + 1);
    }
    for (const auto& [key, inner] : json::get_object(v, {"properties"})) {
      const std::string_view name = key;
      complete_nested(inner, json::find(*s, {"properties", name}),
                      entry(child(s_path, "properties"), name),
                      entry(child(v_path, "properties"), name), depth + 1);
    }
  }

  Causes out_;
};

}  // namespace

void check_structural(const json::value& s, std::string_view path, Causes& out) {
  std::ranges::move(StructuralChecks().run(s, std::string(path)), std::back_inserter(out));
}

}  // namespace skiff::api
