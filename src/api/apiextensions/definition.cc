#include "api/apiextensions/definition.h"

#include "base/strings.h"
#include "schema/openapi.h"

namespace skiff::api {
namespace {

constexpr std::string_view kSchemaReference = "#/components/schemas/";

json::value inlined(const json::value& at, const schema::Registry& registry);

// What stands for a reference: a scalar's own type (a quantity, a time), else any object.
json::value referred(std::string_view name, const schema::Registry& registry) {
  const schema::SchemaPtr found = registry.find(name);
  if (found != nullptr && found->type != schema::Type::kObject) {
    return inlined(schema::to_openapi(*found), registry);
  }
  return json::object{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
}

json::value inlined(const json::value& at, const schema::Registry& registry) {
  if (const json::array* list = at.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(inlined(item, registry));
    return out;
  }
  const json::object* object = at.if_object();
  if (object == nullptr) return at;
  std::string_view name = json::get_string(at, {"$ref"});
  for (const json::value& part : json::get_array(at, {"allOf"})) {
    if (name.empty()) name = json::get_string(part, {"$ref"});
  }
  if (!name.empty()) return referred(name.substr(kSchemaReference.size()), registry);
  json::object out;
  for (const auto& [key, value] : *object) {
    // Patch keywords belong to strategic merge, which custom kinds do not have.
    if (key.starts_with("x-kubernetes-patch-")) continue;
    out[key] = inlined(value, registry);
  }
  return out;
}

json::array strings(const std::vector<std::string>& list) {
  json::array out;
  for (const std::string& text : list) out.emplace_back(json::string(text));
  return out;
}

json::array printer_columns(const Kind& kind) {
  json::array out;
  for (const Column& column : kind.columns) {
    if (column.json_path.empty()) continue;
    json::object one{{"name", column.name}, {"type", column.type}, {"jsonPath", column.json_path}};
    if (column.priority != 0) one["priority"] = column.priority;
    if (!column.description.empty()) one["description"] = column.description;
    out.emplace_back(std::move(one));
  }
  return out;
}

json::value root_schema(const Kind& kind, const schema::Registry& registry) {
  const schema::SchemaPtr found = registry.find(kind.schema);
  if (found == nullptr) {
    return json::object{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  }
  json::value out = inlined(schema::to_openapi(*found), registry);
  // The server knows these itself, and refuses most of what could be said of them.
  json::object& properties = json::make_object(out, {"properties"});
  properties["metadata"] = json::object{{"type", "object"}};
  out.as_object().erase("x-kubernetes-group-version-kind");
  return out;
}

}  // namespace

json::value definition_of(const Kind& kind, const schema::Registry& registry) {
  const Resource& r = kind.resource;
  json::object version{{"name", r.version},
                       {"served", true},
                       {"storage", true},
                       {"schema", {{"openAPIV3Schema", root_schema(kind, registry)}}}};
  json::object below;
  if (kind.has_status) below["status"] = json::object();
  if (kind.scale) {
    json::object scale{{"specReplicasPath", kind.scale->spec},
                       {"statusReplicasPath", kind.scale->status}};
    if (!kind.scale->selector.empty()) scale["labelSelectorPath"] = kind.scale->selector;
    below["scale"] = std::move(scale);
  }
  if (!below.empty()) version["subresources"] = std::move(below);
  if (json::array shown = printer_columns(kind); !shown.empty()) {
    version["additionalPrinterColumns"] = std::move(shown);
  }
  json::object names{{"plural", r.plural}, {"singular", kind.singular}, {"kind", r.kind}};
  if (!kind.short_names.empty()) names["shortNames"] = strings(kind.short_names);
  if (!kind.categories.empty()) names["categories"] = strings(kind.categories);
  return json::object{{"apiVersion", "apiextensions.k8s.io/v1"},
                      {"kind", "CustomResourceDefinition"},
                      {"metadata", {{"name", r.key()}}},
                      {"spec",
                       {{"group", r.group},
                        {"scope", r.namespaced ? "Namespaced" : "Cluster"},
                        {"names", std::move(names)},
                        {"versions", json::array{std::move(version)}}}}};
}

}  // namespace skiff::api
