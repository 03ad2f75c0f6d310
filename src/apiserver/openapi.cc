#include "apiserver/openapi.h"

#include <fmt/format.h>

#include "apiserver/discovery.h"
#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

json::object query(std::string_view name, std::string_view type, std::string_view description) {
  return {{"name", json::string(name)},
          {"in", "query"},
          {"description", json::string(description)},
          {"schema", {{"type", json::string(type)}}}};
}

json::object path_parameter(std::string_view name) {
  return {{"name", json::string(name)},
          {"in", "path"},
          {"required", true},
          {"schema", {{"type", "string"}}}};
}

json::array write_parameters() {
  return {
      query("dryRun", "string", "All: do every check, write nothing."),
      query("fieldManager", "string", "Who makes this change."),
      query("fieldValidation", "string", "What happens to unknown fields: Ignore, Warn or Strict."),
      query("pretty", "string", "Answer with indentation.")};
}

json::object operation(const ServedKind& kind, std::string_view action, const std::string& ref,
                       json::array parameters, bool body) {
  const api::Resource& r = kind.resource();
  const json::object content{{"application/json", {{"schema", {{"$ref", ref}}}}}};
  json::object out{{"description", fmt::format("{} {}", action, r.kind)},
                   {"operationId", fmt::format("{}{}{}", action, r.kind, r.version)},
                   {"parameters", std::move(parameters)},
                   {"responses", {{"200", {{"description", "OK"}, {"content", content}}}}},
                   {"x-kubernetes-action", json::string(action)},
                   {"x-kubernetes-group-version-kind",
                    {{"group", r.group}, {"version", r.version}, {"kind", r.kind}}}};
  if (body) out["requestBody"] = json::object{{"content", content}, {"required", true}};
  return out;
}

json::object patch_operation(const ServedKind& kind, const std::string& ref) {
  json::object out = operation(kind, "patch", ref, write_parameters(), false);
  json::object types;
  for (std::string_view type : {"application/json-patch+json", "application/merge-patch+json",
                                "application/strategic-merge-patch+json"}) {
    if (kind.custom && type == "application/strategic-merge-patch+json") continue;
    types[type] = json::object{{"schema", json::object{{"type", "object"}}}};
  }
  out["requestBody"] = json::object{{"content", std::move(types)}, {"required", true}};
  return out;
}

void add_paths(const ServedKind& kind, const std::string& ref, json::object& paths) {
  const api::Resource& r = kind.resource();
  const std::string collection = r.collection_path(r.namespaced ? "{namespace}" : "");
  json::array in_path;
  if (r.namespaced) in_path.emplace_back(path_parameter("namespace"));
  json::array list{query("labelSelector", "string", "Only objects whose labels match."),
                   query("fieldSelector", "string", "Only objects whose fields match."),
                   query("limit", "integer", "At most so many objects in one answer."),
                   query("watch", "boolean", "Stream changes instead.")};
  paths[collection] =
      json::object{{"parameters", in_path},
                   {"get", operation(kind, "list", ref, std::move(list), false)},
                   {"post", operation(kind, "post", ref, write_parameters(), true)}};
  in_path.emplace_back(path_parameter("name"));
  json::object one{
      {"parameters", in_path},
      {"get", operation(kind, "get", ref, {}, false)},
      {"put", operation(kind, "put", ref, write_parameters(), true)},
      {"patch", patch_operation(kind, ref)},
      {"delete",
       operation(kind, "delete", ref,
                 {query("dryRun", "string", "All: delete nothing."),
                  query("gracePeriodSeconds", "integer", "Time to stop."),
                  query("propagationPolicy", "string", "Orphan, Background or Foreground.")},
                 false)}};
  paths[collection + "/{name}"] = std::move(one);
  if (kind.kind.has_status) {
    paths[collection + "/{name}/status"] =
        json::object{{"parameters", std::move(in_path)},
                     {"get", operation(kind, "get", ref, {}, false)},
                     {"put", operation(kind, "put", ref, write_parameters(), true)},
                     {"patch", patch_operation(kind, ref)}};
  }
}

std::string document(const KindTable& kinds, const SchemaGate& gate, const std::string& group,
                     const std::string& version) {
  json::object paths, schemas;
  for (const ServedKind* kind : kinds.in(group, version)) {
    std::string name;
    json::object components = gate.components(*kind, name);
    const api::Resource& r = kind->resource();
    components[name].as_object()["x-kubernetes-group-version-kind"] =
        json::array{json::object{{"group", r.group}, {"version", r.version}, {"kind", r.kind}}};
    for (auto& member : components) schemas[member.key()] = std::move(member.value());
    add_paths(*kind, "#/components/schemas/" + name, paths);
  }
  return json::serialize(json::object{{"openapi", "3.0.0"},
                                      {"info", {{"title", "Skiff"}, {"version", "v1"}}},
                                      {"paths", std::move(paths)},
                                      {"components", {{"schemas", std::move(schemas)}}}});
}

std::string document_path(const std::string& group, const std::string& version) {
  return group.empty() ? "api/" + version : "apis/" + group + "/" + version;
}

}  // namespace

std::shared_ptr<const OpenApi::Documents> OpenApi::documents(
    const std::shared_ptr<const KindTable>& kinds) {
  const std::lock_guard guard(lock_);
  if (kinds_ == kinds) return documents_;
  Documents made;
  for (const KindTable::Group& group : kinds->groups()) {
    for (const std::string& version : group.versions) {
      made[document_path(group.name, version)] = document(*kinds, gate_, group.name, version);
    }
  }
  kinds_ = kinds;
  documents_ = std::make_shared<const Documents>(std::move(made));
  return documents_;
}

std::optional<http::Response> OpenApi::serve(const std::shared_ptr<const KindTable>& kinds,
                                             const http::Request& request, const http::Url& url) {
  if (url.segments.size() < 2 || url.segments[1] != "v3") return {};
  const auto all = documents(kinds);
  if (url.segments.size() == 2) {
    json::object paths;
    for (const auto& [path, text] : *all) {
      std::string hash = entity_tag(text);
      std::erase(hash, '"');
      paths[path] =
          json::object{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash)}};
    }
    return json_response(200, json::serialize(json::object{{"paths", std::move(paths)}}));
  }
  std::string path;
  for (std::size_t i = 2; i < url.segments.size(); ++i) {
    path += (path.empty() ? "" : "/") + url.segments[i];
  }
  const auto found = all->find(path);
  if (found == all->end()) return {};
  return cacheable_response(request, "application/json", found->second);
}

}  // namespace skiff::apiserver
