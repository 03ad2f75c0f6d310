// A kind of ours is a struct and one function over it:
//
//   struct RunPolicy { std::string clean_pod_policy; std::optional<int> backoff_limit; };
//   template <class V> void describe(V& v, RunPolicy& x) {
//     v.field("cleanPodPolicy", x.clean_pod_policy).one_of({"None", "Running", "All"});
//     v.field("backoffLimit", x.backoff_limit).min(0).doc("Retries before the job fails.");
//   }
//
// schema::build<RunPolicy>() gives its Schema, schema::read<RunPolicy>(json) the struct. Members
// may be bool, integers, double, std::string, Time, json::value, json::object, other described
// structs, and std::optional, std::vector or std::map<std::string, T> of these. A struct may not
// hold itself.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "schema/field.h"
#include "schema/schema.h"

namespace skiff::schema {

// json -> struct. A value of a wrong type leaves the member as it was and adds a cause.
class Reader {
 public:
  Reader(const json::value& at, std::string path, std::vector<Cause>& causes)
      : at_(at), path_(std::move(path)), causes_(causes) {}

  template <class T>
  Field field(std::string_view name, T& member) {
    if (const json::value* v = find(name)) get(*v, path_of(name), member);
    return {};
  }

 private:
  const json::value* find(std::string_view name) const;  // null where absent or JSON null
  std::string path_of(std::string_view name) const;
  void wrong(const json::value& v, std::string_view path, std::string_view wanted);

  void get(const json::value& v, std::string_view path, bool& out);
  void get(const json::value& v, std::string_view path, std::int32_t& out);
  void get(const json::value& v, std::string_view path, std::int64_t& out);
  void get(const json::value& v, std::string_view path, double& out);
  void get(const json::value& v, std::string_view path, std::string& out);
  void get(const json::value& v, std::string_view path, Time& out);
  void get(const json::value& v, std::string_view path, json::object& out);
  void get(const json::value& v, std::string_view, json::value& out) { out = v; }
  template <class T>
  void get(const json::value& v, std::string_view path, std::optional<T>& out) {
    T inner{};
    const std::size_t before = causes_.size();
    get(v, path, inner);
    if (causes_.size() == before) out = std::move(inner);
  }
  template <class T>
  void get(const json::value& v, std::string_view path, std::vector<T>& out) {
    if (!v.is_array()) return wrong(v, path, "array");
    out.clear();
    for (const json::value& item : v.get_array()) {
      T inner{};
      get(item, std::string(path) + "[" + std::to_string(out.size()) + "]", inner);
      out.push_back(std::move(inner));
    }
  }
  template <class T>
  void get(const json::value& v, std::string_view path, std::map<std::string, T>& out) {
    if (!v.is_object()) return wrong(v, path, "object");
    out.clear();
    for (const auto& [key, item] : v.get_object()) {
      get(item, std::string(path) + "." + std::string(key), out[std::string(key)]);
    }
  }
  template <class T>
  void get(const json::value& v, std::string_view path, T& out) {
    if (!v.is_object()) return wrong(v, path, "object");
    Reader inner(v, std::string(path), causes_);
    describe(inner, out);
  }

  const json::value& at_;
  std::string path_;
  std::vector<Cause>& causes_;
};

// struct -> Schema
class Builder {
 public:
  explicit Builder(Schema& owner) : owner_(owner) { owner_.type = Type::kObject; }

  template <class T>
  Field field(std::string_view name, T&) {
    Schema& schema = owner_.add_property(name);
    fill<T>(schema);
    return {&owner_, &schema, std::string(name)};
  }

 private:
  template <class T>
  static constexpr bool kOptional = false;
  template <class T>
  static constexpr bool kOptional<std::optional<T>> = true;
  template <class T>
  static constexpr bool kVector = false;
  template <class T>
  static constexpr bool kVector<std::vector<T>> = true;
  template <class T>
  static constexpr bool kMap = false;
  template <class T>
  static constexpr bool kMap<std::map<std::string, T>> = true;

  template <class T>
  static void fill(Schema& schema) {
    if constexpr (kOptional<T>) {
      fill<typename T::value_type>(schema);
    } else if constexpr (kVector<T>) {
      schema.type = Type::kArray;
      schema.items = build_ptr<typename T::value_type>();
    } else if constexpr (kMap<T>) {
      schema.type = Type::kObject;
      schema.additional = build_ptr<typename T::mapped_type>();
    } else if constexpr (std::same_as<T, bool>) {
      schema.type = Type::kBoolean;
    } else if constexpr (std::integral<T>) {
      schema.type = Type::kInteger;
      schema.format = sizeof(T) == 4 ? "int32" : "int64";
    } else if constexpr (std::floating_point<T>) {
      schema.type = Type::kNumber;
    } else if constexpr (std::same_as<T, std::string> || std::same_as<T, Time>) {
      schema.type = Type::kString;
      if constexpr (std::same_as<T, Time>) schema.format = "date-time";
    } else if constexpr (std::same_as<T, json::value> || std::same_as<T, json::object>) {
      if constexpr (std::same_as<T, json::object>) schema.type = Type::kObject;
      schema.preserve_unknown = true;
    } else {
      Builder inner(schema);
      T example{};
      describe(inner, example);
    }
  }
  template <class T>
  static SchemaPtr build_ptr() {
    auto out = std::make_shared<Schema>();
    fill<T>(*out);
    return out;
  }

  Schema& owner_;
};

template <class T>
Schema build() {
  Schema out;
  Builder builder(out);
  T example{};
  describe(builder, example);
  return out;
}

// What read() gives where the value is good, and the best effort where it is not: for objects that
// the API server has already checked.
template <class T>
T view(const json::value& v) {
  T out{};
  std::vector<Cause> causes;
  Reader reader(v, {}, causes);
  describe(reader, out);
  return out;
}

// The schema of a whole object: apiVersion, kind, metadata, and spec and status as given.
Schema object_schema(Schema spec, std::optional<Schema> status);

Error wrong_types(std::vector<Cause> causes);

// Error with one cause per field of a wrong type. Unknown fields are ignored.
template <class T>
Result<T> read(const json::value& v, std::string path = {}) {
  T out{};
  std::vector<Cause> causes;
  Reader reader(v, std::move(path), causes);
  describe(reader, out);
  if (!causes.empty()) return std::unexpected(wrong_types(std::move(causes)));
  return out;
}

}  // namespace skiff::schema
