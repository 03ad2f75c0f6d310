// An OpenAPI v2 document as gnostic's protobuf. Field numbers are those of gnostic's
// OpenAPIv2.proto.
#include <string>

#include "apiserver/wire/openapi_v2.h"
#include "apiserver/wire/proto.h"

namespace skiff::apiserver {
namespace {

using proto::Writer;

enum class How { kText, kTexts, kFlag, kInteger, kReal, kAny, kAnys };
struct Plain {
  std::string_view key = {};
  std::uint32_t number = 0;
  How how = How::kText;
};

// Any{yaml 2}: JSON is YAML.
Writer any(const json::value& v) {
  Writer out;
  out.text(2, json::serialize(v));
  return out;
}

double real_of(const json::value& v) { return v.is_number() ? v.to_number<double>() : 0; }

void write_plain(Writer& out, const json::object& from, std::initializer_list<Plain> fields) {
  for (const Plain& field : fields) {
    const json::value* v = from.if_contains(field.key);
    if (v == nullptr) continue;
    switch (field.how) {
      case How::kText:
        out.text(field.number, json::get_string(*v, {}));
        break;
      case How::kTexts:
        for (const json::value& item : json::get_array(*v, {})) {
          out.text(field.number, json::get_string(item, {}));
        }
        break;
      case How::kFlag:
        out.flag(field.number, json::get_bool(*v, {}).value_or(false));
        break;
      case How::kInteger:
        out.integer(field.number, json::get_int(*v, {}).value_or(0));
        break;
      case How::kReal:
        out.real(field.number, real_of(*v));
        break;
      case How::kAny:
        out.message(field.number, any(*v));
        break;
      case How::kAnys:
        for (const json::value& item : json::get_array(*v, {})) {
          out.message(field.number, any(item));
        }
        break;
    }
  }
}

void write_extensions(Writer& out, std::uint32_t number, const json::object& from) {
  for (const auto& member : from) {
    if (!std::string_view(member.key()).starts_with("x-")) continue;
    Writer named;
    named.text(1, member.key());
    named.message(2, any(member.value()));
    out.message(number, named);
  }
}

Writer schema(const json::object& from);

void write_one(Writer& out, std::uint32_t number, std::string_view name, const Writer& value) {
  Writer named;
  named.text(1, name);
  named.message(2, value);
  out.message(number, named);
}

// Named things in a list: {name 1, value 2}.
template <class Make>
void write_named(Writer& out, std::uint32_t number, const json::object& from, Make make) {
  for (const auto& member : from) {
    write_one(out, number, member.key(), make(member.value().get_object()));
  }
}

Writer schema(const json::object& from) {
  Writer out;
  write_plain(out, from,
              {{"$ref", 1},
               {"format", 2},
               {"title", 3},
               {"description", 4},
               {"default", 5, How::kAny},
               {"multipleOf", 6, How::kReal},
               {"maximum", 7, How::kReal},
               {"exclusiveMaximum", 8, How::kFlag},
               {"minimum", 9, How::kReal},
               {"exclusiveMinimum", 10, How::kFlag},
               {"maxLength", 11, How::kInteger},
               {"minLength", 12, How::kInteger},
               {"pattern", 13},
               {"maxItems", 14, How::kInteger},
               {"minItems", 15, How::kInteger},
               {"uniqueItems", 16, How::kFlag},
               {"maxProperties", 17, How::kInteger},
               {"minProperties", 18, How::kInteger},
               {"required", 19, How::kTexts},
               {"enum", 20, How::kAnys},
               {"example", 30, How::kAny}});
  if (const json::value* v = from.if_contains("additionalProperties")) {
    Writer item;
    if (v->is_object()) item.message(1, schema(v->get_object()));
    if (v->is_bool()) item.flag(2, v->get_bool());
    out.message(21, item);
  }
  if (const json::value* v = from.if_contains("type")) {
    Writer item;
    item.text(1, json::get_string(*v, {}));
    out.message(22, item);
  }
  if (const json::value* v = from.if_contains("items"); v != nullptr && v->is_object()) {
    Writer item;
    item.message(1, schema(v->get_object()));
    out.message(23, item);
  }
  if (const json::value* v = from.if_contains("properties")) {
    Writer item;
    write_named(item, 1, v->get_object(), schema);
    out.message(25, item);
  }
  write_extensions(out, 31, from);
  return out;
}

// ParametersItem{parameter 1}, in it a body (1) or something else (2): query 3 or path 4.
Writer parameter(const json::object& from) {
  Writer out, chosen, one;
  const std::string_view in = json::get_string(from.at("in"), {});
  if (in == "body") {
    write_plain(one, from, {{"name", 2}, {"in", 3}, {"required", 4, How::kFlag}});
    one.message(5, schema(from.at("schema").get_object()));
    chosen.message(1, one);
  } else {
    const bool query = in == "query";
    const std::uint32_t type = query ? 6 : 5;
    write_plain(one, from,
                {{"required", 1, How::kFlag},
                 {"in", 2},
                 {"description", 3},
                 {"name", 4},
                 {"type", type},
                 {"uniqueItems", query ? 20u : 19u, How::kFlag}});
    Writer other;
    other.message(query ? 3 : 4, one);
    chosen.message(2, other);
  }
  out.message(1, chosen);
  return out;
}

void write_gnostic_parameters(Writer& out, std::uint32_t number, const json::object& from) {
  const json::value* list = from.if_contains("parameters");
  if (list == nullptr) return;
  for (const json::value& p : list->get_array()) out.message(number, parameter(p.get_object()));
}

// ResponseValue{response 1}, with its schema in a SchemaItem{schema 1}.
Writer response(const json::object& from) {
  Writer item, inner, out;
  item.message(1, schema(from.at("schema").get_object()));
  write_plain(inner, from, {{"description", 1}});
  inner.message(2, item);
  out.message(1, inner);
  return out;
}

Writer gnostic_operation(const json::object& from) {
  Writer out, responses;
  write_plain(out, from,
              {{"description", 3},
               {"operationId", 5},
               {"produces", 6, How::kTexts},
               {"consumes", 7, How::kTexts}});
  write_gnostic_parameters(out, 8, from);
  write_named(responses, 1, from.at("responses").get_object(), response);
  out.message(9, responses);
  write_extensions(out, 13, from);
  return out;
}

Writer path_item(const json::object& from) {
  constexpr std::pair<std::string_view, std::uint32_t> kMethods[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  Writer out;
  for (const auto& [method, number] : kMethods) {
    if (const json::value* v = from.if_contains(method)) {
      out.message(number, gnostic_operation(v->get_object()));
    }
  }
  write_gnostic_parameters(out, 9, from);
  return out;
}

}  // namespace

std::string gnostic_path(std::string_view name, const json::object& path) {
  Writer out;
  write_one(out, 2, name, path_item(path));
  return out.take();
}

std::string gnostic_definition(std::string_view name, const json::object& from) {
  Writer out;
  write_one(out, 1, name, schema(from));
  return out.take();
}

std::string gnostic_document(const json::object& head, std::string_view paths,
                             std::string_view definitions) {
  Writer out, info;
  write_plain(info, head.at("info").get_object(), {{"title", 1}, {"version", 2}});
  write_plain(out, head, {{"swagger", 1}});
  out.message(2, info);
  out.text(8, paths);
  out.text(9, definitions);
  return out.take();
}

}  // namespace skiff::apiserver
