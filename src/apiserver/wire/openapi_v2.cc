#include "apiserver/wire/openapi_v2.h"

#include <unordered_map>

namespace skiff::apiserver {
namespace {

constexpr std::string_view kV3Schemas = "#/components/schemas/";
constexpr std::string_view kHttpMethods[] = {"get", "put", "post", "delete", "patch"};

json::object schema_v2(const json::object& v3);

json::string reference_v2(const json::value& v3) {
  const std::string_view text = json::get_string(v3, {});
  return json::string("#/definitions/" + std::string(text.substr(kV3Schemas.size())));
}

json::value value_v2(const json::value& v3) {
  return v3.is_object() ? json::value(schema_v2(v3.get_object())) : v3;
}

std::string_view text_under(const json::object& from, std::string_view key) {
  const json::value* v = from.if_contains(key);
  return v == nullptr ? std::string_view() : json::get_string(*v, {});
}

bool set(const json::object& v3, std::string_view key) {
  const json::value* v = v3.if_contains(key);
  return v != nullptr && v->is_bool() && v->get_bool();
}

// The one type of a value that v3 describes as one of several: what old clients take for any.
void settle_type(const json::object& v3, json::object& out) {
  if (v3.contains("type") || !v3.contains("oneOf")) return;
  const std::string_view format = text_under(v3, "format");
  if (format == "int-or-string" || v3.at("oneOf").get_array().size() == 2) out["type"] = "string";
}

// kubectl cannot read untyped places that have fields, lists without items, or unknown fields
// beside known ones: there it must take anything.
void loosen(const json::object& v3, json::object& out) {
  const bool any = set(v3, "nullable");
  const bool unknown = set(v3, "x-kubernetes-preserve-unknown-fields");
  if (any || unknown) {
    out.erase("items");
    out.erase("properties");
  }
  const bool object = text_under(out, "type") == "object";
  const bool bare_list = text_under(out, "type") == "array" && !out.contains("items");
  if (any || (unknown && object) || bare_list) {
    out.erase("type");
  }
}

json::object schema_v2(const json::object& v3) {
  if (const json::value* ref = v3.if_contains("$ref")) return {{"$ref", reference_v2(*ref)}};
  json::object out;
  for (const auto& member : v3) {
    const std::string_view key = member.key();
    const json::value& value = member.value();
    if (key == "allOf") {
      const json::array& all = value.get_array();
      if (all.size() == 1 && all[0].is_object() && all[0].get_object().contains("$ref")) {
        out["$ref"] = reference_v2(all[0].get_object().at("$ref"));
      }
    } else if (key == "properties") {
      json::object properties;
      for (const auto& p : value.get_object()) properties[p.key()] = value_v2(p.value());
      out[key] = std::move(properties);
    } else if (key == "items" || key == "additionalProperties") {
      out[key] = value_v2(value);
    } else if (key != "oneOf" && key != "anyOf" && key != "not" && key != "nullable") {
      out[key] = value;
    }
  }
  if (out.contains("$ref")) out.erase("default");
  settle_type(v3, out);
  loosen(v3, out);
  return out;
}

// kubectl takes a kind whose schema names fields to have no others; so one that takes anything is
// shown without any, not even metadata.
json::object definition_v2(const json::object& v3) {
  const json::value* names = v3.if_contains("x-kubernetes-group-version-kind");
  if (names == nullptr || !set(v3, "x-kubernetes-preserve-unknown-fields")) return schema_v2(v3);
  return {{"type", "object"}, {"x-kubernetes-group-version-kind", *names}};
}

json::object parameter_v2(const json::object& v3) {
  json::object out;
  for (const auto& member : v3) {
    if (member.key() != "schema") {
      out[member.key()] = member.value();
      continue;
    }
    for (const auto& inner : member.value().get_object()) out[inner.key()] = inner.value();
  }
  return out;
}

json::array parameters_v2(const json::object& v3) {
  json::array out;
  if (const json::value* list = v3.if_contains("parameters")) {
    for (const json::value& p : list->get_array()) {
      out.emplace_back(parameter_v2(p.get_object()));
    }
  }
  return out;
}

// The media types of a v3 content map; the schema of the first.
json::array types_of(const json::value& content, json::object& schema) {
  json::array types;
  for (const auto& member : content.get_object()) {
    types.emplace_back(member.key());
    schema = schema_v2(json::get_object(member.value(), {"schema"}));
  }
  return types;
}

json::object operation_v2(const json::object& v3) {
  json::object out, schema;
  for (const auto& member : v3) {
    const std::string_view key = member.key();
    if (key != "parameters" && key != "requestBody" && key != "responses") {
      out[key] = member.value();
    }
  }
  json::array parameters = parameters_v2(v3);
  if (const json::value* body = v3.if_contains("requestBody")) {
    out["consumes"] = types_of(*json::find(*body, {"content"}), schema);
    parameters.insert(
        parameters.begin(),
        json::object{{"name", "body"}, {"in", "body"}, {"required", true}, {"schema", schema}});
  }
  out["parameters"] = std::move(parameters);
  json::object responses;
  for (const auto& member : v3.at("responses").get_object()) {
    out["produces"] = types_of(*json::find(member.value(), {"content"}), schema);
    responses[member.key()] =
        json::object{{"description", member.value().at("description")}, {"schema", schema}};
  }
  out["responses"] = std::move(responses);
  return out;
}

json::object path_v2(const json::object& v3) {
  json::object out;
  for (const std::string_view method : kHttpMethods) {
    if (const json::value* v = v3.if_contains(method)) out[method] = operation_v2(v->get_object());
  }
  if (v3.contains("parameters")) out["parameters"] = parameters_v2(v3);
  return out;
}

// "name":{...}, as it stands between the braces of an object.
std::string json_member(std::string_view name, const json::object& value) {
  const std::string text = json::serialize(json::object{{json::string(name), value}});
  return text.substr(1, text.size() - 2);
}

using Members = std::vector<const PartV2::Member*>;

// Each name once, at the place of the first that has it. Of definitions a kind's own counts: it
// names its group, version and kind.
Members merge_parts(const std::vector<std::shared_ptr<const PartV2>>& parts,
                    std::vector<PartV2::Member> PartV2::* which) {
  Members out;
  std::unordered_map<std::string_view, std::size_t> at;
  for (const auto& part : parts) {
    for (const PartV2::Member& member : (*part).*which) {
      const auto [found, first] = at.try_emplace(member.name, out.size());
      if (first) {
        out.push_back(&member);
      } else if (member.own) {
        out[found->second] = &member;
      }
    }
  }
  return out;
}

std::string join_texts(const Members& members, std::string_view separator) {
  std::size_t size = 0;
  for (const PartV2::Member* member : members) size += member->text.size() + separator.size();
  std::string out;
  out.reserve(size);
  for (const PartV2::Member* member : members) {
    if (!out.empty()) out += separator;
    out += member->text;
  }
  return out;
}

}  // namespace

PartV2 openapi_v2_part(const json::object& v3_document, FormV2 form) {
  const bool protobuf = form == FormV2::kProtobuf;
  PartV2 out;
  for (const auto& path : v3_document.at("paths").get_object()) {
    const json::object v2 = path_v2(path.value().get_object());
    out.paths.push_back(
        {.name = path.key(),
         .text = protobuf ? gnostic_path(path.key(), v2) : json_member(path.key(), v2),
         .own = true});
  }
  for (const auto& schema : v3_document.at("components").at("schemas").get_object()) {
    const json::object& v3 = schema.value().get_object();
    const json::object v2 = definition_v2(v3);
    out.definitions.push_back(
        {.name = schema.key(),
         .text = protobuf ? gnostic_definition(schema.key(), v2) : json_member(schema.key(), v2),
         .own = v3.contains("x-kubernetes-group-version-kind")});
  }
  return out;
}

std::string openapi_v2(const std::vector<std::shared_ptr<const PartV2>>& parts, FormV2 form) {
  const bool protobuf = form == FormV2::kProtobuf;
  const json::object head{{"swagger", "2.0"}, {"info", {{"title", "Skiff"}, {"version", "v1"}}}};
  const std::string_view separator = protobuf ? "" : ",";
  const std::string paths = join_texts(merge_parts(parts, &PartV2::paths), separator);
  const std::string definitions = join_texts(merge_parts(parts, &PartV2::definitions), separator);
  if (protobuf) return gnostic_document(head, paths, definitions);
  std::string out = json::serialize(head);
  out.pop_back();
  out.reserve(out.size() + paths.size() + definitions.size() + 64);
  return out.append(R"(,"paths":{)")
      .append(paths)
      .append(R"(},"definitions":{)")
      .append(definitions)
      .append("}}");
}

}  // namespace skiff::apiserver
