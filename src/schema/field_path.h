// One step of a path into an API object, as managedFields name it: a field, an item of a list by
// its keys, by its value or by its place.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::schema {

class PathElement {
 public:
  // In the order in which they stand in a set.
  enum class Kind : std::uint8_t { kField, kKey, kValue, kIndex };

  static PathElement field(std::string_view name);
  // `keys` need not be sorted.
  static PathElement key(std::vector<std::pair<std::string, json::value>> keys);
  static PathElement value(json::value value);
  static PathElement index(std::int64_t at);

  // From f:name, k:{"name":"c"}, v:"x" or i:3. kNotFound: a sort of step this server does not know.
  static Result<PathElement> parse(std::string_view text);

  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }  // of a field

  // As it stands in FieldsV1.
  std::string encoded() const;
  // As people read it in a conflict: .name, [name="c"], [="x"], [3].
  std::string text() const;

  std::strong_ordering operator<=>(const PathElement& other) const;
  bool operator==(const PathElement& other) const { return (*this <=> other) == 0; }

 private:
  Kind kind_ = Kind::kField;
  std::string name_ = {};
  // kKey: an array of names and values by turns, sorted by name; else the value or the index.
  json::value value_ = {};
};

// A total order over scalars: numbers, texts, booleans, null; 1 and 1.0 are equal.
std::strong_ordering compare_scalars(const json::value& a, const json::value& b);

}  // namespace skiff::schema
