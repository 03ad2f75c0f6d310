// All definitions by name: built-in ones, given as text and read when first asked for, and those
// that features and CRDs add. Any thread may use it.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schema/schema.h"

namespace skiff::schema {

class Registry {
 public:
  Registry() = default;
  // `definitions` must outlive the registry; see definitions.h for its form.
  explicit Registry(std::string_view definitions);

  // Null where there is none. What was returned stays valid when the name is given anew.
  SchemaPtr find(std::string_view name) const;
  void add(std::string name, Schema schema);
  void remove(std::string_view name);
  std::vector<std::string> names() const;  // sorted

  // The schema that counts at this place: itself, or the definition its `ref` names. A name that is
  // not known gives a schema that allows everything. `holder` keeps the result alive.
  const Schema& resolve(const Schema& place, SchemaPtr& holder) const;

 private:
  struct Entry {
    std::string_view text = {};  // not read yet where `schema` is null
    SchemaPtr schema = {};
  };

  mutable std::shared_mutex mutex_;
  // Every step into an object asks for a name or two.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  mutable std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
};

}  // namespace skiff::schema
