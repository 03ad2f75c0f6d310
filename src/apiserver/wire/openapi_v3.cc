#include "apiserver/wire/openapi_v3.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/builtin.h"
#include "apiserver/request_body.h"
#include "apiserver/wire/names.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kSchemas = "#/components/schemas/";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::string_view kTime = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr std::string_view kStatus = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

// What an operation is about, and the schema of what it answers.
struct DescribedKind {
  json::object gvk = {};
  std::string schema = {};
};

json::object gvk_of(std::string_view group, std::string_view version, std::string_view kind) {
  return {{"group", json::string(group)},
          {"version", json::string(version)},
          {"kind", json::string(kind)}};
}

json::object query(std::string_view name, std::string_view type, std::string_view description) {
  return {{"name", json::string(name)},
          {"in", "query"},
          {"description", json::string(description)},
          {"schema", {{"type", json::string(type)}, {"uniqueItems", true}}}};
}

json::object in_path(std::string_view name) {
  return {{"name", json::string(name)},
          {"in", "path"},
          {"required", true},
          {"schema", {{"type", "string"}, {"uniqueItems", true}}}};
}

json::array write_query_parameters(bool patch) {
  json::array out{query("dryRun", "string", "All: do every check, write nothing."),
                  query("fieldManager", "string", "Who makes this change."),
                  query("fieldValidation", "string",
                        "What happens to unknown fields: Ignore, Warn or Strict.")};
  if (patch) out.emplace_back(query("force", "boolean", "Take fields that others have applied."));
  return out;
}

json::array list_parameters() {
  return {query("allowWatchBookmarks", "boolean", "Send bookmarks on a watch."),
          query("continue", "string", "Where the page before ended."),
          query("fieldSelector", "string", "Only objects whose fields match."),
          query("labelSelector", "string", "Only objects whose labels match."),
          query("limit", "integer", "At most so many objects in one answer."),
          query("resourceVersion", "string", "How new the answer must be."),
          query("resourceVersionMatch", "string", "Exact or NotOlderThan."),
          query("sendInitialEvents", "boolean", "Begin a watch with what there is."),
          query("timeoutSeconds", "integer", "How long a watch may last."),
          query("watch", "boolean", "Stream changes instead.")};
}

json::array delete_parameters() {
  return {query("dryRun", "string", "All: delete nothing."),
          query("gracePeriodSeconds", "integer", "Time to stop."),
          query("orphanDependents", "boolean", "The old form of propagationPolicy."),
          query("propagationPolicy", "string", "Orphan, Background or Foreground.")};
}

json::object schema_reference(std::string_view schema) {
  return {{"$ref", std::string(kSchemas) + std::string(schema)}};
}

json::object content(std::string_view schema) {
  json::object out;
  for (std::string_view type : {"application/json", "application/yaml"}) {
    out[type] = json::object{{"schema", schema_reference(schema)}};
  }
  return out;
}

json::object openapi_operation(const DescribedKind& subject, std::string_view action,
                               const std::string& id, json::array parameters, int code = 200) {
  return {
      {"description",
       fmt::format("{} {}", action, json::view(subject.gvk.at("kind").get_string()))},
      {"operationId", id},
      {"parameters", std::move(parameters)},
      {"responses",
       {{std::to_string(code),
         {{"description", code == 201 ? "Created" : "OK"}, {"content", content(subject.schema)}}}}},
      {"x-kubernetes-action", json::string(action)},
      {"x-kubernetes-group-version-kind", subject.gvk}};
}

json::object write_operation(const DescribedKind& subject, std::string_view action,
                             const std::string& id) {
  json::object out = openapi_operation(subject, action, id, write_query_parameters(false),
                                       action == "post" ? 201 : 200);
  out["requestBody"] = json::object{
      {"content", {{"*/*", {{"schema", schema_reference(subject.schema)}}}}}, {"required", true}};
  return out;
}

json::object patch_operation(const ServedKind& kind, const DescribedKind& subject,
                             const std::string& id) {
  json::object out = openapi_operation(subject, "patch", id, write_query_parameters(true));
  json::object types;
  for (const std::string_view type : patch_types(kind)) {
    types[type] = json::object{{"schema", json::object{{"type", "object"}}}};
  }
  out["requestBody"] = json::object{{"content", std::move(types)}, {"required", true}};
  return out;
}

bool has_verb(const std::vector<std::string>& verbs, std::string_view verb) {
  return std::ranges::count(verbs, verb) > 0;
}

class Document {
 public:
  explicit Document(const SchemaGate& gate) : gate_(gate) {}

  void add(const ServedKind& kind) {
    const api::Resource& r = kind.resource();
    DescribedKind one{.gvk = gvk_of(r.group, r.version, r.kind)};
    json::object components = gate_.components(kind, one.schema);
    json::object& own = components[one.schema].as_object();
    if (kind.custom) complete(own);
    own["x-kubernetes-group-version-kind"] = json::array{one.gvk};
    for (auto& member : components) schemas_[member.key()] = std::move(member.value());
    add_paths(kind, one);
  }

  json::object take() {
    describe_metadata();
    return {{"openapi", "3.0.0"},
            {"info", {{"title", "Skiff"}, {"version", "v1"}}},
            {"paths", std::move(paths_)},
            {"components", {{"schemas", std::move(schemas_)}}}};
  }

 private:
  // What clients ask most about fields that every object has.
  void describe_metadata() {
    json::value* metadata = schemas_.if_contains(api::kObjectMeta);
    if (metadata == nullptr) return;
    json::object& properties = json::make_object(*metadata, {"properties"});
    properties["creationTimestamp"] = json::object{
        {"description",
         "CreationTimestamp is a timestamp: when the server made this object. Clients cannot set "
         "it."},
        {"allOf", json::array{schema_reference(kTime)}}};
    gate_.add_component(std::string(kTime), schemas_);
  }

  // What every object has and no definition of a custom kind says.
  void complete(json::object& schema) {
    json::object& properties = json::make_object(schema, {"properties"});
    properties["apiVersion"] = json::object{
        {"type", "string"},
        {"description", "APIVersion defines the schema of this object: its group and version."}};
    properties["kind"] =
        json::object{{"type", "string"}, {"description", "The type of the object."}};
    properties["metadata"] =
        json::object{{"description", "Standard object's metadata."},
                     {"allOf", json::array{schema_reference(api::kObjectMeta)}}};
    gate_.add_component(std::string(api::kObjectMeta), schemas_);
  }

  DescribedKind list_of(const ServedKind& kind, const DescribedKind& one) {
    const api::Resource& r = kind.resource();
    DescribedKind list{.gvk = gvk_of(r.group, r.version, r.kind + "List"),
                       .schema = one.schema + "List"};
    schemas_[list.schema] =
        json::object{{"type", "object"},
                     {"required", json::array{"items"}},
                     {"properties",
                      {{"apiVersion", {{"type", "string"}}},
                       {"items", {{"type", "array"}, {"items", schema_reference(one.schema)}}},
                       {"kind", {{"type", "string"}}},
                       {"metadata", schema_reference(kListMeta)}}},
                     {"x-kubernetes-group-version-kind", json::array{list.gvk}}};
    gate_.add_component(std::string(kListMeta), schemas_);
    // The operation is about the kind; only what it answers is the list.
    list.gvk = one.gvk;
    return list;
  }

  void add_paths(const ServedKind& kind, const DescribedKind& one) {
    const api::Resource& r = kind.resource();
    const std::vector<std::string> words = verbs(kind);
    const std::string collection = r.collection_path(r.namespaced ? "{namespace}" : "");
    const auto id = [&](std::string_view action, std::string_view more = "") {
      return fmt::format("{}{}{}{}", action, r.kind, more, r.version);
    };
    json::array place;
    if (r.namespaced) place.emplace_back(in_path("namespace"));
    place.emplace_back(query("pretty", "string", "Answer with indentation."));
    json::object all{{"parameters", place}}, each;
    if (has_verb(words, "list")) {
      const DescribedKind list = list_of(kind, one);
      all["get"] = openapi_operation(list, "list", id("list"), list_parameters());
      if (r.namespaced) {
        paths_[r.collection_path("")] =
            json::object{{"get", openapi_operation(list, "list", id("list", "ForAllNamespaces"),
                                                   list_parameters())}};
      }
    }
    if (has_verb(words, "create")) all["post"] = write_operation(one, "post", id("create"));
    const DescribedKind gone{.gvk = one.gvk, .schema = std::string(kStatus)};
    gate_.add_component(gone.schema, schemas_);
    if (has_verb(words, "deletecollection")) {
      all["delete"] =
          openapi_operation(gone, "deletecollection", id("deleteCollection"), delete_parameters());
    }
    paths_[collection] = std::move(all);
    place.insert(place.begin(), in_path("name"));
    each["parameters"] = place;
    if (has_verb(words, "get")) each["get"] = openapi_operation(one, "get", id("read"), {});
    if (has_verb(words, "update")) each["put"] = write_operation(one, "put", id("replace"));
    if (has_verb(words, "patch")) each["patch"] = patch_operation(kind, one, id("patch"));
    if (has_verb(words, "delete")) {
      each["delete"] = openapi_operation(gone, "delete", id("delete"), delete_parameters());
    }
    if (each.size() > 1) paths_[collection + "/{name}"] = std::move(each);
    for (const api::Subresource& sub : subresources(kind)) {
      paths_[collection + "/{name}/" + sub.name] = below(kind, one, sub, place);
    }
  }

  json::object below(const ServedKind& kind, const DescribedKind& one, const api::Subresource& sub,
                     const json::array& place) {
    const api::Resource& r = kind.resource();
    DescribedKind subject = one;
    if (sub.kind != r.kind) {
      const std::string& group = sub.version.empty() ? r.group : sub.group;
      const std::string& version = sub.version.empty() ? r.version : sub.version;
      subject = {.gvk = gvk_of(group, version, sub.kind),
                 .schema = builtin_definition(group, version, sub.kind)};
      gate_.add_component(subject.schema, schemas_);
    }
    const auto id = [&](std::string_view action) {
      return fmt::format("{}{}{}{}", action, r.kind, sub.name, r.version);
    };
    json::object out{{"parameters", place}};
    if (has_verb(sub.verbs, "get")) out["get"] = openapi_operation(subject, "get", id("read"), {});
    if (has_verb(sub.verbs, "create")) out["post"] = write_operation(subject, "post", id("create"));
    if (has_verb(sub.verbs, "update")) out["put"] = write_operation(subject, "put", id("replace"));
    if (has_verb(sub.verbs, "patch")) out["patch"] = patch_operation(kind, subject, id("patch"));
    return out;
  }

  const SchemaGate& gate_;
  json::object paths_;
  json::object schemas_;
};

}  // namespace

json::object openapi_v3(const KindTable& kinds, const SchemaGate& gate, const std::string& group,
                        const std::string& version) {
  Document document(gate);
  for (const ServedKindPtr& kind : kinds.in(group, version)) document.add(*kind);
  return document.take();
}

}  // namespace skiff::apiserver
