#include "apiserver/schema_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "api/builtin.h"
#include "apiserver/scale.h"
#include "apiserver/upkeep/fit.h"
#include "base/strings.h"
#include "schema/canonical.h"
#include "schema/check.h"
#include "schema/defaults.h"
#include "schema/openapi.h"
#include "schema/prune.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kReferencePrefix = "#/components/schemas/";

void collect_references(const json::value& at, std::vector<std::string>& out) {
  if (const json::object* object = at.if_object()) {
    for (const auto& member : *object) {
      if (member.key() == "$ref" && member.value().is_string()) {
        const std::string_view text = json::view(member.value().get_string());
        if (text.starts_with(kReferencePrefix)) {
          out.emplace_back(text.substr(kReferencePrefix.size()));
        }
      } else {
        collect_references(member.value(), out);
      }
    }
  } else if (const json::array* array = at.if_array()) {
    for (const json::value& item : *array) collect_references(item, out);
  }
}

// Of every kind the server knows what metadata is made of.
const schema::Schema& metadata_place() {
  static const schema::Schema kPlace{.ref = std::string(api::kObjectMeta)};
  return kPlace;
}

// The value at spec.template.metadata.labels or spec.ports[0].name; null where there is none.
const json::value* at_path(const json::value& object, std::string_view path) {
  const json::value* at = &object;
  while (at != nullptr && !path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    if (end > 0) at = json::find(*at, {path.substr(0, end)});
    path.remove_prefix(end);
    if (path.starts_with('.')) path.remove_prefix(1);
    if (at == nullptr || !path.starts_with('[')) continue;
    std::size_t index = 0;
    const auto [rest, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
    const json::array* list = at->if_array();
    const bool fine = error == std::errc{} && rest != path.data() + path.size() && *rest == ']';
    at = fine && list != nullptr && index < list->size() ? &(*list)[index] : nullptr;
    path.remove_prefix(std::min(path.find(']'), path.size() - 1) + 1);
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  return at;
}

// An empty list or map is lost when an object is read, but Go tells one from none in a sentence.
void show_as_sent(const json::value& sent, Cause& cause) {
  constexpr std::string_view kNothing = " value: null";
  const std::size_t at = cause.message.find(kNothing);
  if (at == cause.message.npos || at > std::string_view("Unsupported").size()) return;
  const json::value* given = at_path(sent, cause.field);
  if (given == nullptr || (!given->is_object() && !given->is_array())) return;
  cause.message.replace(at + kNothing.size() - 4, 4, given->is_object() ? "{}" : "[]");
}

// io.example.sea.v1.Boat for Boat of sea.example.io/v1: group turned around, as Kubernetes names
// the schemas of custom kinds.
std::string custom_name(const api::Resource& r) {
  std::string name;
  const auto parts = split(r.group, '.');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) name += std::string(*part) + ".";
  return name + r.version + "." + r.kind;
}

}  // namespace

schema::SchemaPtr SchemaGate::schema_of(const ServedKind& kind) const {
  if (kind.custom) return kind.schema;
  return kind.kind.schema.empty() ? nullptr : registry_.find(kind.kind.schema);
}

std::vector<std::string> SchemaGate::prune(const ServedKind& kind, json::value& object) const {
  const schema::SchemaPtr schema = schema_of(kind);
  if (!schema) return {};
  std::vector<std::string> removed = schema::prune(registry_, *schema, object);
  schema::prune_nulls(registry_, *schema, object);
  return removed;
}

void SchemaGate::set_defaults(const ServedKind& kind, json::value& object) const {
  const schema::SchemaPtr schema = schema_of(kind);
  if (schema && schema->builtin) {
    schema::normalize(registry_, *schema, object);
  } else if (json::object* root = object.if_object(); root && root->contains("metadata")) {
    schema::normalize(registry_, metadata_place(), root->at("metadata"));
  }
  if (schema) schema::apply_defaults(registry_, *schema, object);
  if (kind.kind.set_defaults != nullptr) kind.kind.set_defaults(object);
}

void SchemaGate::complete(const ServedKind& kind, json::value& object) const {
  if (kind.custom && kind.converts() && kind.kept_schema) fit_custom(*kind.kept_schema, object);
  if (kind.storage_schema.empty()) return;
  const schema::SchemaPtr schema = registry_.find(kind.storage_schema);
  if (schema) schema::complete(registry_, *schema, object);
}

void SchemaGate::complete_view(const ServedKind& kind, json::value& object) const {
  if (const schema::SchemaPtr schema = schema_of(kind)) {
    schema::complete(registry_, *schema, object, schema::Empty::kStays);
  }
}

const json::value& SchemaGate::blank(const ServedKind& kind) const {
  // Custom kinds share an empty name and an empty object.
  const std::string_view name = kind.custom ? std::string_view() : kind.kind.schema;
  const std::lock_guard lock(blanks_lock_);
  auto at = blanks_.find(name);
  if (at == blanks_.end()) {
    json::value object = json::object();
    if (!name.empty()) complete_view(kind, object);
    at = blanks_.emplace(std::string(name), std::move(object)).first;
  }
  return at->second;
}

Result<void> SchemaGate::check_types(const ServedKind& kind, const json::value& object) const {
  const schema::SchemaPtr schema = schema_of(kind);
  const api::Resource& r = kind.resource();
  if (schema && schema->builtin) {
    return schema::check_object(registry_, *schema, object, r.kind, r.group, r.version);
  }
  const json::value* metadata = json::find(object, {"metadata"});
  if (metadata == nullptr) return {};
  return schema::check_object(registry_, metadata_place(), *metadata, r.kind, r.group, r.version,
                              "metadata");
}

Result<void> SchemaGate::check(const ServedKind& kind, const json::value& object) const {
  const schema::SchemaPtr schema = schema_of(kind);
  if (!schema || schema->builtin) return {};
  const api::Resource& r = kind.resource();
  return schema::check_object(registry_, *schema, object, r.kind, r.group, r.version);
}

Result<std::vector<Cause>> SchemaGate::judge(const ServedKind& kind, const json::value& object,
                                             std::string_view subresource) const {
  if (!kind.custom) {
    SKIFF_TRY(check(kind, object));
    return std::vector<Cause>();
  }
  std::vector<Cause> causes;
  if (kind.schema) causes = schema::check(registry_, *kind.schema, object);
  for (Cause& cause : check_scale(kind, object, subresource)) causes.push_back(std::move(cause));
  return causes;
}

std::vector<Cause> SchemaGate::validate(const ServedKind& kind, const json::value& object,
                                        const api::Admission& context,
                                        std::vector<std::string>& warnings) const {
  std::vector<Cause> causes;
  if (kind.kind.validate != nullptr) causes = kind.kind.validate(object, context);
  if (context.sent != nullptr) {
    for (Cause& cause : causes) show_as_sent(*context.sent, cause);
  }
  if (causes.empty() && kind.kind.warnings != nullptr) {
    for (std::string& warning : kind.kind.warnings(object, context)) {
      warnings.push_back(std::move(warning));
    }
  }
  return causes;
}

json::object SchemaGate::components(const ServedKind& kind, std::string& name) const {
  json::object out;
  const schema::SchemaPtr schema = schema_of(kind);
  name = kind.custom || kind.kind.schema.empty() ? custom_name(kind.resource()) : kind.kind.schema;
  out[name] =
      schema ? schema::to_openapi(*schema)
             : json::object{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  std::vector<std::string> open;
  collect_references(out[name], open);
  for (const std::string& definition : open) add_component(definition, out);
  return out;
}

void SchemaGate::add_component(const std::string& definition, json::object& components) const {
  std::vector<std::string> open{definition};
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    if (components.contains(next)) continue;
    const schema::SchemaPtr found = registry_.find(next);
    json::value component = found ? json::value(schema::to_openapi(*found))
                                  : json::value(json::object{{"type", "object"}});
    collect_references(component, open);
    components[next] = std::move(component);
  }
}

}  // namespace skiff::apiserver
