// What may stand at one place of an API object. One compact form for everything that has a schema:
// built-in kinds, kinds of ours written with describe(), and CRDs of users. The operations over it
// live in files of their own (check, prune, defaults, openapi, strategic_merge).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::schema {

enum class Type : std::uint8_t { kAny, kObject, kArray, kString, kInteger, kNumber, kBoolean };
// How server-side apply sees a list: as one value, as a set, or as a map by key fields.
enum class ListType : std::uint8_t { kAtomic, kSet, kMap };

std::string_view type_text(Type type);  // "object"; empty for kAny

struct Property;
struct Schema;
using SchemaPtr = std::shared_ptr<const Schema>;

struct Schema {
  Type type = Type::kAny;
  bool nullable = false;
  bool int_or_string = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;
  bool atomic_map = false;
  ListType list_type = ListType::kAtomic;
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  bool unique_items = false;
  bool has_rules = false;  // x-kubernetes-validations, which are kept in `extra` but not evaluated
  // A type the Kubernetes server decodes into a Go struct: a wrong type is a 400 and null is
  // absent.
  bool builtin = false;
  // How Go holds and writes a property of such a type: by a pointer, which tells zero from absent;
  // always, even where it is zero; left out where it is a zero struct.
  bool pointer = false;
  bool always = false;
  bool omit_zero = false;
  // Name of a definition in the Registry that stands here. Besides it only the documentation, the
  // default and the list and patch properties of this place count.
  std::string ref = {};
  std::string format = {};
  std::string description = {};
  std::string pattern = {};          // RE2
  std::vector<Property> properties;  // sorted by name
  std::vector<std::string> required = {};
  SchemaPtr items = {};
  SchemaPtr additional = {};  // values of a map
  std::vector<json::value> enumeration = {};
  std::optional<json::value> fallback = {};  // OpenAPI's `default`
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  std::optional<double> multiple_of = {};
  std::optional<std::uint64_t> min_length = {}, max_length = {};
  std::optional<std::uint64_t> min_items = {}, max_items = {};
  std::optional<std::uint64_t> min_properties = {}, max_properties = {};
  std::vector<Schema> all_of, any_of, one_of;
  SchemaPtr negated = {};  // OpenAPI's `not`
  std::vector<std::string> list_map_keys = {};
  std::string patch_merge_key = {};
  std::string patch_strategy = {};  // merge, replace, retainKeys, or two joined by a comma
  // Keywords we carry for readers but do not use: x-kubernetes-validations, example, title.
  json::object extra = {};

  const Schema* property(std::string_view name) const;
  // The property, added in its place where absent.
  Schema& add_property(std::string_view name);
  bool requires_property(std::string_view name) const;
  bool merges_lists() const { return patch_strategy.find("merge") != std::string::npos; }
  bool retains_keys() const { return patch_strategy.find("retainKeys") != std::string::npos; }
};

struct Property {
  std::string name = {};
  Schema schema = {};
};

}  // namespace skiff::schema
