#include "apiserver/discovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "apiserver/access/rules.h"
#include "apiserver/negotiate.h"
#include "apiserver/status.h"
#include "apiserver/wire/names.h"

namespace skiff::apiserver {
namespace {

json::object group_version(const std::string& group, const std::string& version) {
  return {{"groupVersion", group.empty() ? version : group + "/" + version}, {"version", version}};
}

json::object group_document(const KindTable::Group& group) {
  json::array versions;
  for (const std::string& version : group.versions) {
    versions.emplace_back(group_version(group.name, version));
  }
  return {{"name", group.name},
          {"versions", std::move(versions)},
          {"preferredVersion", group_version(group.name, group.versions.front())}};
}

// Where the real server keeps objects; clients compare it over time, and between servers.
std::string storage_hash(const ServedKind& kind) {
  const api::Resource& r = kind.resource();
  // It has kept definitions in this form since before there was another.
  if (r.key() == kCrdKey) return storage_version_hash(r.group, "v1beta1", r.kind);
  return storage_version_hash(kind.storage_group, kind.storage_version, r.kind);
}

json::object resource_list(const KindTable& kinds, const std::string& group,
                           const std::string& version) {
  json::array resources;
  for (const ServedKindPtr& kind : kinds.in(group, version)) {
    const api::Resource& r = kind->resource();
    json::object entry{{"name", r.plural},
                       {"singularName", kind->kind.singular},
                       {"namespaced", r.namespaced},
                       {"kind", r.kind},
                       {"verbs", words(verbs(*kind))}};
    if (!kind->kind.short_names.empty()) entry["shortNames"] = words(kind->kind.short_names);
    if (!kind->kind.categories.empty()) entry["categories"] = words(kind->kind.categories);
    if (!is_question(*kind)) entry["storageVersionHash"] = storage_hash(*kind);
    resources.emplace_back(std::move(entry));
    for (const api::Subresource& sub : subresources(*kind)) {
      json::object below{{"name", r.plural + "/" + sub.name},
                         {"singularName", ""},
                         {"namespaced", r.namespaced},
                         {"kind", sub.kind},
                         {"verbs", words(sub.verbs)}};
      if (!sub.version.empty()) {
        below["group"] = sub.group;
        below["version"] = sub.version;
      }
      resources.emplace_back(std::move(below));
    }
  }
  json::object list{{"kind", "APIResourceList"}};
  // The oldest documents have no version of their own.
  if (!group.empty()) list["apiVersion"] = "v1";
  list["groupVersion"] = group.empty() ? version : group + "/" + version;
  list["resources"] = std::move(resources);
  return list;
}

json::object aggregated_resource(const ServedKind& kind) {
  const api::Resource& r = kind.resource();
  const auto response_kind = [&](const api::Subresource& sub) {
    const bool ours = sub.version.empty();
    return json::object{{"group", ours ? r.group : sub.group},
                        {"version", ours ? r.version : sub.version},
                        {"kind", sub.kind}};
  };
  json::object entry{{"resource", r.plural},
                     {"responseKind", response_kind({.kind = r.kind})},
                     {"scope", r.namespaced ? "Namespaced" : "Cluster"},
                     {"singularResource", kind.kind.singular},
                     {"verbs", words(verbs(kind))}};
  if (!kind.kind.short_names.empty()) entry["shortNames"] = words(kind.kind.short_names);
  if (!kind.kind.categories.empty()) entry["categories"] = words(kind.kind.categories);
  json::array subs;
  for (const api::Subresource& sub : subresources(kind)) {
    subs.emplace_back(json::object{{"subresource", sub.name},
                                   {"responseKind", response_kind(sub)},
                                   {"verbs", words(sub.verbs)}});
  }
  if (!subs.empty()) entry["subresources"] = std::move(subs);
  return entry;
}

http::Response aggregated(const KindTable& kinds, const http::Request& request, bool core,
                          const std::string& version) {
  json::array items;
  for (const KindTable::Group& group : kinds.groups()) {
    if (group.name.empty() != core) continue;
    json::array versions;
    for (const std::string& v : group.versions) {
      json::array resources;
      for (const ServedKindPtr& kind : kinds.in(group.name, v)) {
        resources.emplace_back(aggregated_resource(*kind));
      }
      versions.emplace_back(json::object{
          {"version", v}, {"resources", std::move(resources)}, {"freshness", "Current"}});
    }
    json::object metadata;
    if (!core) metadata["name"] = group.name;
    items.emplace_back(
        json::object{{"metadata", std::move(metadata)}, {"versions", std::move(versions)}});
  }
  http::Response response = cacheable_response(
      request,
      fmt::format("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", version),
      json::serialize(json::object{{"kind", "APIGroupDiscoveryList"},
                                   {"apiVersion", "apidiscovery.k8s.io/" + version},
                                   {"metadata", json::object()},
                                   {"items", std::move(items)}}));
  response.headers.emplace_back("Vary", "Accept");
  return response;
}

json::object roots(const KindTable& kinds, bool core, std::string_view host) {
  if (core) {
    return {{"kind", "APIVersions"},
            {"versions", json::array{"v1"}},
            {"serverAddressByClientCIDRs",
             json::array{json::object{{"clientCIDR", "0.0.0.0/0"},
                                      {"serverAddress", json::string(host)}}}}};
  }
  json::array groups;
  for (const KindTable::Group& group : kinds.groups()) {
    if (!group.name.empty()) groups.emplace_back(group_document(group));
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}};
}

}  // namespace

std::string entity_tag(std::string_view body) {
  // FNV-1a over two starting points: not a secret, only a name for the bytes.
  std::uint64_t a = 14695981039346656037ULL, b = 0x9e3779b97f4a7c15ULL;
  for (const char c : body) {
    a = (a ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL + 0x632be59bd9b4e019ULL;
  }
  return fmt::format("\"{:016X}{:016X}\"", a, b);
}

http::Response cacheable_response(const http::Request& request, std::string content_type,
                                  const std::string& body, const std::string& tag) {
  const bool known = http::header(request.headers, "If-None-Match") == tag;
  return {.status = known ? 304 : 200,
          .headers = {{"Content-Type", std::move(content_type)},
                      {"Cache-Control", "public"},
                      {"ETag", tag}},
          .body = known ? "" : body};
}

http::Response cacheable_response(const http::Request& request, std::string content_type,
                                  std::string body) {
  return cacheable_response(request, std::move(content_type), body, entity_tag(body));
}

http::Response no_such_resource(const KindTable& kinds, std::string_view group) {
  const bool ours = std::ranges::any_of(kinds.all(), [&](const auto& kind) {
    return !kind->custom && kind->resource().group == group;
  });
  if (!ours) return text_response(404, "404 page not found\n");
  return routing_response(Code::kNotFound, "the server could not find the requested resource");
}

std::optional<http::Response> discover(const KindTable& kinds, const http::Request& request,
                                       const http::Url& url) {
  const auto& path = url.segments;
  if (path.empty() || (path[0] != "api" && path[0] != "apis")) return {};
  const bool core = path[0] == "api";
  if (path.size() == 1) {
    const std::string version = wanted_discovery(http::header(request.headers, "Accept"));
    if (!version.empty()) return aggregated(kinds, request, core, version);
    return json_response(
        200, json::serialize(roots(kinds, core, http::header(request.headers, "Host"))));
  }
  const std::string group = core ? "" : path[1];
  const auto found = std::ranges::find(kinds.groups(), group, &KindTable::Group::name);
  if (found == kinds.groups().end()) return no_such_resource(kinds, group);
  if (!core && path.size() == 2) {
    json::object document = group_document(*found);
    document["kind"] = "APIGroup";
    document["apiVersion"] = "v1";
    return json_response(200, json::serialize(document));
  }
  const std::string& version = path[core ? 1 : 2];
  if (std::ranges::count(found->versions, version) == 0) return no_such_resource(kinds, group);
  return json_response(200, json::serialize(resource_list(kinds, group, version)));
}

}  // namespace skiff::apiserver
