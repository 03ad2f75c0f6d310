#include "schema/describe.h"

#include "schema/causes.h"

namespace skiff::schema {

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const json::value* Reader::find(std::string_view name) const {
  const json::value* v = json::find(at_, {name});
  return v == nullptr || v->is_null() ? nullptr : v;
}

std::string Reader::path_of(std::string_view name) const { return child(path_, name); }

void Reader::wrong(const json::value& v, std::string_view path, std::string_view wanted) {
  causes_.push_back(invalid(std::string(path), v, "must be of type " + std::string(wanted)));
}

void Reader::get(const json::value& v, std::string_view path, bool& out) {
  if (!v.is_bool()) return wrong(v, path, "boolean");
  out = v.get_bool();
}

void Reader::get(const json::value& v, std::string_view path, std::int64_t& out) {
  const std::optional<std::int64_t> n = json::get_int(v, {});
  if (n) {
    out = *n;
  } else {
    wrong(v, path, "integer");
  }
}

void Reader::get(const json::value& v, std::string_view path, std::int32_t& out) {
  const std::optional<std::int64_t> n = json::get_int(v, {});
  if (n && *n >= INT32_MIN && *n <= INT32_MAX) {
    out = static_cast<std::int32_t>(*n);
  } else {
    wrong(v, path, "32-bit integer");
  }
}

void Reader::get(const json::value& v, std::string_view path, double& out) {
  if (v.is_double()) {
    out = v.get_double();
  } else if (v.is_int64()) {
    out = static_cast<double>(v.get_int64());
  } else if (v.is_uint64()) {
    out = static_cast<double>(v.get_uint64());
  } else {
    wrong(v, path, "number");
  }
}

void Reader::get(const json::value& v, std::string_view path, std::string& out) {
  if (!v.is_string()) return wrong(v, path, "string");
  out = json::view(v.get_string());
}

void Reader::get(const json::value& v, std::string_view path, Time& out) {
  const std::optional<Time> t =
      v.is_string() ? parse_time(json::view(v.get_string())) : std::nullopt;
  if (!t) return wrong(v, path, "RFC 3339 time");
  out = *t;
}

void Reader::get(const json::value& v, std::string_view path, json::object& out) {
  if (!v.is_object()) return wrong(v, path, "object");
  out = v.get_object();
}

Schema object_schema(Schema spec, std::optional<Schema> status) {
  Schema out;
  out.type = Type::kObject;
  out.add_property("apiVersion").type = Type::kString;
  out.add_property("kind").type = Type::kString;
  out.add_property("metadata").ref = kObjectMeta;
  out.add_property("spec") = std::move(spec);
  if (status) out.add_property("status") = *std::move(status);
  return out;
}

Error wrong_types(std::vector<Cause> causes) {
  Error error{.code = Code::kInvalid, .causes = std::move(causes)};
  for (const Cause& cause : error.causes) {
    if (!error.message.empty()) error.message += "; ";
    error.message += cause.field + ": " + cause.message;
  }
  return error;
}

}  // namespace skiff::schema
