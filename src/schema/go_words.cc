#include "schema/go_words.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/limits.h"
#include "base/quantity.h"

namespace skiff::schema {
namespace {

std::string_view go_kind(const json::value& v) {
  if (v.is_object()) return "map";
  if (v.is_array()) return "slice";
  if (v.is_string()) return "string";
  if (v.is_bool()) return "bool";
  return v.is_double() ? "float64" : "int64";
}

std::optional<std::string> scalar_error(const Schema& s, const json::value& v) {
  const bool whole = v.is_int64() || v.is_uint64() ||
                     (v.is_double() && v.get_double() == std::trunc(v.get_double()));
  switch (s.type) {
    case Type::kString:
      if (v.is_string()) return {};
      if (v.is_int64() || v.is_uint64()) return "cannot convert int64 to string";
      return "unrecognized type: string";
    case Type::kBoolean:
      if (v.is_bool()) return {};
      return "unrecognized type: bool";
    case Type::kInteger: {
      const std::string type = s.format == "int32" ? "int32" : "int64";
      if (whole) return {};
      if (v.is_double()) return fmt::format("cannot convert float64 to {}", type);
      return "unrecognized type: " + type;
    }
    case Type::kNumber:
      if (v.is_number()) return {};
      return "unrecognized type: float64";
    default:
      return {};
  }
}

class Restorer {
 public:
  explicit Restorer(const Registry& registry) : registry_(registry) {}

  std::optional<std::string> run(const Schema& place, const json::value& v, std::size_t depth) {
    if (depth > limits::kJsonDepth || v.is_null()) return {};
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    if (s.int_or_string) {
      if (v.is_string() || v.is_number()) return {};
      return fmt::format("json: cannot unmarshal {} into Go value of type int32",
                         v.is_bool() ? "bool" : json::type_name(v));
    }
    if (s.format == "quantity") {
      const Result<Quantity> quantity = Quantity::from_json(v);
      return quantity ? std::nullopt : std::optional(quantity.error().message);
    }
    // Types that read their JSON themselves.
    if (s.preserve_unknown || s.format == "date-time" || s.type == Type::kAny) return {};
    if (s.type == Type::kArray) return list(s, v, depth);
    if (s.type != Type::kObject) return scalar_error(s, v);
    return s.additional ? map(s, v, depth) : structure(s, v, depth);
  }

 private:
  std::optional<std::string> list(const Schema& s, const json::value& v, std::size_t depth) {
    if (!v.is_array()) return fmt::format("cannot restore slice from {}", go_kind(v));
    for (const json::value& item : v.get_array()) {
      if (!s.items) break;
      if (auto error = run(*s.items, item, depth + 1)) return error;
    }
    return {};
  }

  std::optional<std::string> map(const Schema& s, const json::value& v, std::size_t depth) {
    if (!v.is_object()) return fmt::format("cannot restore map from {}", go_kind(v));
    for (const auto& member : v.get_object()) {
      if (auto error = run(*s.additional, member.value(), depth + 1)) return error;
    }
    return {};
  }

  std::optional<std::string> structure(const Schema& s, const json::value& v, std::size_t depth) {
    if (!v.is_object()) return fmt::format("cannot restore struct from: {}", go_kind(v));
    for (const Property& property : s.properties) {
      const json::value* member = v.get_object().if_contains(property.name);
      if (member == nullptr) continue;
      if (auto error = run(property.schema, *member, depth + 1)) return error;
    }
    return {};
  }

  const Registry& registry_;
};

}  // namespace

std::string go_text(const json::value& value) {
  if (const json::object* object = value.if_object()) {
    std::map<std::string, const json::value*> sorted;
    for (const auto& member : *object) sorted.emplace(member.key(), &member.value());
    std::string out;
    for (const auto& [key, member] : sorted) {
      out += fmt::format("{}{}:{}", out.empty() ? "" : " ", key, go_text(*member));
    }
    return "map[" + out + "]";
  }
  if (const json::array* array = value.if_array()) {
    std::string out;
    for (const json::value& item : *array) out += (out.empty() ? "" : " ") + go_text(item);
    return "[" + out + "]";
  }
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return std::string(json::view(value.get_string()));
  if (value.is_double()) return fmt::format("{:g}", value.get_double());
  return json::serialize(value);
}

std::optional<std::string> restore_error(const Registry& registry, const Schema& schema,
                                         const json::value& value) {
  return Restorer(registry).run(schema, value, 0);
}

}  // namespace skiff::schema
