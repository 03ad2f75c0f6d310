#include "apiserver/table.h"

#include <algorithm>

#include "api/meta.h"
#include "apiserver/json_path.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kNameHelp =
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

// Definitions of custom kinds never declare the name; built-in kinds may place it themselves.
bool name_comes_first(const ServedKind& kind) {
  return std::ranges::none_of(kind.kind.columns,
                              [](const api::Column& c) { return c.name == "Name"; });
}

json::value cell_of(const api::Column& column, const json::value& object, Time now) {
  const auto path = JsonPath::parse(column.json_path);
  if (!path) return nullptr;
  const auto found = path->find(object);
  if (column.type == "date") {
    const auto time = found.empty() || !found[0]->is_string()
                          ? std::optional<Time>()
                          : parse_time(json::view(found[0]->get_string()));
    if (!time) return "<unknown>";
    return json::string(age(now - *time));
  }
  if (found.empty()) return nullptr;
  if (found.size() == 1) {
    if (column.type != "string" || found[0]->is_string()) return *found[0];
    return json::string(json::serialize(*found[0]));
  }
  std::string joined;
  for (const json::value* value : found) {
    if (!joined.empty()) joined += ',';
    joined +=
        value->is_string() ? std::string(json::view(value->get_string())) : json::serialize(*value);
  }
  return json::string(joined);
}

json::object column_definition(const api::Column& column, bool custom = false) {
  // Ages of built-in kinds are computed here, so what the client gets is text.
  const bool age = !custom && column.type == "date" && !column.json_path.empty();
  return {{"name", column.name},
          {"type", age ? "string" : column.type},
          {"format", column.name == "Name" ? std::string("name") : column.format},
          {"description", column.description},
          {"priority", column.priority}};
}

// What a DaemonSet of apps/v1 carries as an annotation is a field to the real server, which looks
// at metadata alone before it is made into one.
void hide_template_generation(json::object& metadata) {
  json::value* annotations = metadata.if_contains("annotations");
  if (annotations == nullptr || !annotations->is_object()) return;
  annotations->get_object().erase("deprecated.daemonset.template.generation");
  if (annotations->get_object().empty()) metadata.erase("annotations");
}

}  // namespace

json::array table_columns(const ServedKind& kind) {
  json::array columns;
  if (name_comes_first(kind)) {
    columns.emplace_back(column_definition(
        {.name = "Name", .type = "string", .description = std::string(kNameHelp)}));
  }
  for (const api::Column& column : kind.kind.columns) {
    columns.emplace_back(column_definition(column, kind.custom));
  }
  if (kind.kind.columns.empty()) {
    columns.emplace_back(column_definition({.name = "Age", .type = "date"}));
  }
  return columns;
}

json::object partial_metadata(const json::value& object, std::string_view meta_version) {
  json::object metadata = json::get_object(object, {"metadata"});
  if (api::kind(object) == "DaemonSet" && api::api_version(object) == "apps/v1") {
    hide_template_generation(metadata);
  }
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/" + std::string(meta_version)},
          {"metadata", std::move(metadata)}};
}

json::object table_row(const ServedKind& kind, const json::value& object, RowObject include,
                       std::string_view meta_version, Time now) {
  json::array cells;
  if (name_comes_first(kind)) cells.emplace_back(json::string(api::name(object)));
  if (kind.kind.cells != nullptr) {
    const std::int64_t now_s =
        std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
    for (json::value& cell : kind.kind.cells(object, now_s)) cells.push_back(std::move(cell));
  } else if (kind.kind.columns.empty()) {
    cells.push_back(
        cell_of({.type = "date", .json_path = ".metadata.creationTimestamp"}, object, now));
  } else {
    for (const api::Column& column : kind.kind.columns) {
      cells.push_back(cell_of(column, object, now));
    }
  }
  json::object row{{"cells", std::move(cells)}};
  if (include == RowObject::kMetadata) row["object"] = partial_metadata(object, meta_version);
  if (include == RowObject::kObject) row["object"] = object;
  return row;
}

}  // namespace skiff::apiserver
