#include "schema/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/limits.h"
#include "base/quantity.h"
#include "base/time.h"
#include "schema/causes.h"

namespace skiff::schema {
namespace {

constexpr std::size_t kMostCauses = 100;

bool is_integer(const json::value& v) {
  return v.is_int64() || v.is_uint64() ||
         (v.is_double() && v.get_double() == std::trunc(v.get_double()));
}

bool has_type(const json::value& v, Type type) {
  switch (type) {
    case Type::kAny:
      return true;
    case Type::kObject:
      return v.is_object();
    case Type::kArray:
      return v.is_array();
    case Type::kString:
      return v.is_string();
    case Type::kInteger:
      return is_integer(v);
    case Type::kNumber:
      return v.is_number();
    case Type::kBoolean:
      return v.is_bool();
  }
  return false;
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class Checker {
 public:
  Checker(const Registry& registry, bool builtin_root)
      : registry_(registry), builtin_root_(builtin_root) {}

  void run(const Schema& place, const json::value& v, const std::string& path, std::size_t depth) {
    if (causes_.size() >= kMostCauses) return;
    if (depth > limits::kJsonDepth) {
      causes_.push_back(invalid(path, "...", "nested too deeply"));
      return;
    }
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    if (v.is_null()) {
      if (!s.nullable && !s.builtin && s.type != Type::kAny) wrong_type(s, v, path);
      return;
    }
    if (s.int_or_string) {
      if (!v.is_string() && !is_integer(v)) say_type("integer,string", v, path);
      return;
    }
    // Go reads no 1e3 or 2.0 into a field of whole numbers; custom kinds may.
    const bool fraction = s.builtin && s.type == Type::kInteger && v.is_double();
    if (!has_type(v, s.type) || fraction) {
      wrong_type(s, v, path);
      return;
    }
    check_format(s, v, path);
    if (!s.builtin) check_constraints(s, v, path, depth);
    if (const json::object* o = v.if_object()) check_members(s, *o, path, depth);
    if (const json::array* a = v.if_array()) check_items(s, *a, path, depth);
  }

  std::vector<Cause> take() { return std::move(causes_); }

 private:
  void say_type(std::string_view wanted, const json::value& v, const std::string& path) {
    const json::string have(json::type_name(v));
    causes_.push_back(type_invalid(
        path, have,
        fmt::format("{} in body must be of type {}: \"{}\"", path, wanted, json::view(have))));
  }
  void wrong_type(const Schema& s, const json::value& v, const std::string& path) {
    say_type(type_text(s.type), v, path);
  }
  void say(const json::value& v, const std::string& path, std::string_view rule) {
    causes_.push_back(invalid(path, v, fmt::format("{} in body {}", path, rule)));
  }

  void check_format(const Schema& s, const json::value& v, const std::string& path) {
    if (s.format.empty()) return;
    if (s.format == "quantity") {
      const Result<Quantity> q = Quantity::from_json(v);
      if (!q) causes_.push_back(invalid(path, v, q.error().message));
    } else if (s.format == "date-time" && v.is_string()) {
      if (!parse_time(json::view(v.get_string()))) {
        causes_.push_back(type_invalid(
            path, v,
            fmt::format("{} in body must be of type date-time: {}", path, json::serialize(v))));
      }
    } else if (s.format == "int32" && v.is_number()) {
      const std::optional<std::int64_t> n = json::get_int(v, {});
      if (!n || *n > INT32_MAX || *n < INT32_MIN) say(v, path, "must be of type int32");
    }
  }

  void check_constraints(const Schema& s, const json::value& v, const std::string& path,
                         std::size_t depth) {
    if (!s.enumeration.empty() && std::ranges::find(s.enumeration, v) == s.enumeration.end()) {
      std::vector<std::string> supported;
      for (const json::value& e : s.enumeration) {
        supported.push_back(e.is_string() ? std::string(json::view(e.get_string()))
                                          : json::serialize(e));
      }
      causes_.push_back(unsupported(path, v, supported));
    }
    if (v.is_number()) check_number(s, v, path);
    if (v.is_string()) check_string(s, json::view(v.get_string()), v, path);
    check_combinations(s, v, path, depth);
  }

  void check_number(const Schema& s, const json::value& v, const std::string& path) {
    const auto n = v.to_number<double>();
    if (s.minimum && (s.exclusive_minimum ? n <= *s.minimum : n < *s.minimum)) {
      say(v, path,
          fmt::format("should be greater than {}{}", s.exclusive_minimum ? "" : "or equal to ",
                      *s.minimum));
    }
    if (s.maximum && (s.exclusive_maximum ? n >= *s.maximum : n > *s.maximum)) {
      say(v, path,
          fmt::format("should be less than {}{}", s.exclusive_maximum ? "" : "or equal to ",
                      *s.maximum));
    }
    if (s.multiple_of && *s.multiple_of != 0 && std::remainder(n, *s.multiple_of) != 0) {
      say(v, path, fmt::format("should be a multiple of {}", *s.multiple_of));
    }
  }

  void check_string(const Schema& s, std::string_view text, const json::value& v,
                    const std::string& path) {
    if (s.min_length && characters(text) < *s.min_length) {
      say(v, path, fmt::format("should be at least {} chars long", *s.min_length));
    }
    if (s.max_length && characters(text) > *s.max_length) {
      causes_.push_back(too_long(path, *s.max_length));
    }
    if (!s.pattern.empty() && !matches_pattern(s.pattern, text)) {
      say(v, path, fmt::format("should match '{}'", s.pattern));
    }
  }

  bool fits(const Schema& s, const json::value& v, const std::string& path, std::size_t depth) {
    Checker inner(registry_, builtin_root_);
    inner.run(s, v, path, depth + 1);
    return inner.causes_.empty();
  }

  void check_combinations(const Schema& s, const json::value& v, const std::string& path,
                          std::size_t depth) {
    const auto count = [&](const std::vector<Schema>& list) {
      return std::ranges::count_if(list,
                                   [&](const Schema& one) { return fits(one, v, path, depth); });
    };
    for (const Schema& one : s.all_of) run(one, v, path, depth + 1);
    if (!s.any_of.empty() && count(s.any_of) == 0) {
      causes_.push_back(
          invalid(path, v, fmt::format("\"{}\" must validate at least one schema (anyOf)", path)));
    }
    if (!s.one_of.empty() && count(s.one_of) != 1) {
      causes_.push_back(invalid(
          path, v, fmt::format("\"{}\" must validate one and only one schema (oneOf)", path)));
    }
    if (s.negated && fits(*s.negated, v, path, depth)) {
      causes_.push_back(
          invalid(path, v, fmt::format("\"{}\" must not validate the schema (not)", path)));
    }
  }

  void check_members(const Schema& s, const json::object& o, const std::string& path,
                     std::size_t depth) {
    if (!s.builtin || !builtin_root_) {
      for (const std::string& name : s.required) {
        const json::value* member = o.if_contains(name);
        if (member == nullptr) causes_.push_back(required(child(path, name)));
      }
    }
    if (s.embedded_resource) {
      for (const std::string_view name : {"apiVersion", "kind"}) {
        const json::value* member = o.if_contains(name);
        if (member == nullptr || !member->is_string() || member->get_string().empty()) {
          causes_.push_back(required(child(path, name), "must not be empty"));
        }
      }
    }
    if (s.min_properties && o.size() < *s.min_properties) {
      say(o, path, fmt::format("should have at least {} properties", *s.min_properties));
    }
    if (s.max_properties && o.size() > *s.max_properties) {
      causes_.push_back(too_many(path, o.size(), *s.max_properties));
    }
    for (const auto& [key, member] : o) {
      if (const Schema* p = s.property(key)) {
        run(*p, member, child(path, std::string_view(key)), depth + 1);
      } else if (s.additional) {
        run(*s.additional, member, child(path, std::string_view(key)), depth + 1);
      }
    }
  }

  void check_items(const Schema& s, const json::array& a, const std::string& path,
                   std::size_t depth) {
    if (s.min_items && a.size() < *s.min_items) {
      say(a.size(), path, fmt::format("should have at least {} items", *s.min_items));
    }
    if (s.max_items && a.size() > *s.max_items) {
      causes_.push_back(too_many(path, a.size(), *s.max_items));
      return;
    }
    if (s.items) {
      for (std::size_t i = 0; i < a.size(); ++i) run(*s.items, a[i], child(path, i), depth + 1);
    }
    if (!s.builtin) check_unique(s, a, path);
  }

  void check_unique(const Schema& s, const json::array& a, const std::string& path) {
    const bool by_key = s.list_type == ListType::kMap;
    if (!by_key && s.list_type != ListType::kSet && !s.unique_items) return;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < a.size() && causes_.size() < kMostCauses; ++i) {
      json::value key = a[i];
      if (by_key) {
        json::object keys;
        for (const std::string& name : s.list_map_keys) {
          const json::value* k = json::find(a[i], {name});
          keys[name] = k == nullptr ? json::value() : *k;
        }
        key = std::move(keys);
      }
      if (!seen.insert(json::serialize(key)).second) {
        causes_.push_back(duplicate(child(path, i), key));
      }
    }
  }

  const Registry& registry_;
  const bool builtin_root_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> check(const Registry& registry, const Schema& schema, const json::value& value,
                         std::string_view path) {
  SchemaPtr holder;
  Checker checker(registry, registry.resolve(schema, holder).builtin);
  checker.run(schema, value, std::string(path), 0);
  return checker.take();
}

Result<void> check_object(const Registry& registry, const Schema& schema, const json::value& object,
                          std::string_view kind, std::string_view group, std::string_view version,
                          std::string_view path) {
  std::vector<Cause> causes = check(registry, schema, object, path);
  if (causes.empty()) return {};
  SchemaPtr holder;
  if (!registry.resolve(schema, holder).builtin) {
    const std::string_view name = json::get_string(object, {"metadata", "name"});
    return std::unexpected(invalid_error(kind, group, name, std::move(causes)));
  }
  const Cause& first = causes.front();
  return fail(Code::kBadRequest,
              fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}: {3}", kind,
                          version, first.field, first.message));
}

}  // namespace skiff::schema
