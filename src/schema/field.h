// The rules of one field in a describe() function, as chained setters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "schema/schema.h"

namespace skiff::schema {

// The rules of one field. While reading there is no schema and the rules are no-ops: the API server
// has checked and defaulted the object before anybody reads it.
class Field {
 public:
  Field() = default;
  Field(Schema* owner, Schema* schema, std::string name)
      : owner_(owner), schema_(schema), name_(std::move(name)) {}

  Field& doc(std::string_view text);
  Field& required();
  Field& one_of(std::initializer_list<std::string_view> values);
  Field& min(double least);
  Field& max(double most);
  Field& length(std::uint64_t least, std::uint64_t most);
  Field& items(std::uint64_t least, std::uint64_t most);
  Field& pattern(std::string_view re2);
  Field& format(std::string_view name);
  // What the API server fills in where the field is absent. Give the member the same initial value.
  Field& fallback(json::value value);
  Field& nullable();
  // Any value below is kept as it came; for json::value and json::object members.
  Field& preserve_unknown();
  Field& int_or_string();
  // A definition of the Registry: "io.k8s.api.core.v1.PodTemplateSpec".
  Field& definition(std::string_view name);
  // A list that clients and patches see as a map by these fields.
  Field& list_map(std::initializer_list<std::string_view> keys);
  Field& list_set();

 private:
  Schema* owner_ = nullptr;
  Schema* schema_ = nullptr;
  std::string name_ = {};
};

}  // namespace skiff::schema
