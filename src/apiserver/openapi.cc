#include "apiserver/openapi.h"

#include <fmt/format.h>

#include "apiserver/discovery.h"
#include "apiserver/negotiate.h"
#include "apiserver/status.h"
#include "apiserver/wire/openapi_v2.h"
#include "apiserver/wire/openapi_v3.h"

namespace skiff::apiserver {
namespace {

std::string document_path(const std::string& group, const std::string& version) {
  return group.empty() ? "api/" + version : "apis/" + group + "/" + version;
}

// What clients call the protobuf form: now, for a while, and before 2021.
constexpr std::string_view kV2Names[] = {
    kOpenApiV2Type, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.googleapis.gnostic.openapiv2@68f4ded+protobuf"};

}  // namespace

std::shared_ptr<const OpenApi::Documents> OpenApi::documents(
    const std::shared_ptr<const KindTable>& kinds) {
  const std::lock_guard guard(lock_);
  if (kinds_ == kinds) return documents_;
  Documents made;
  json::object paths;
  for (const KindTable::Group& group : kinds->groups()) {
    for (const std::string& version : group.versions) {
      const std::string path = document_path(group.name, version);
      Document document{.body = json::serialize(openapi_v3(*kinds, gate_, group.name, version))};
      document.tag = entity_tag(document.body);
      std::string hash = document.tag;
      std::erase(hash, '"');
      paths[path] =
          json::object{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash)}};
      made.v3[path] = std::move(document);
    }
  }
  made.index = json::serialize(json::object{{"paths", std::move(paths)}});
  kinds_ = kinds;
  documents_ = std::make_shared<const Documents>(std::move(made));
  return documents_;
}

std::shared_ptr<const OpenApi::V2> OpenApi::v2(const std::shared_ptr<const KindTable>& kinds) {
  const std::lock_guard guard(v2_lock_);
  if (v2_kinds_ == kinds) return v2_;
  std::vector<json::object> documents;
  for (const KindTable::Group& group : kinds->groups()) {
    for (const std::string& version : group.versions) {
      documents.push_back(openapi_v3(*kinds, gate_, group.name, version));
    }
  }
  const json::object whole = openapi_v2(documents);
  V2 made{.json = {.body = json::serialize(whole)}, .protobuf = {.body = gnostic(whole)}};
  made.json.tag = entity_tag(made.json.body);
  made.protobuf.tag = entity_tag(made.protobuf.body);
  v2_kinds_ = kinds;
  v2_ = std::make_shared<const V2>(std::move(made));
  return v2_;
}

std::optional<http::Response> OpenApi::serve_v2(const std::shared_ptr<const KindTable>& kinds,
                                                const http::Request& request) {
  for (const MediaRange& range : parse_accept(http::header(request.headers, "Accept"))) {
    if (range.matches("application/json")) {
      const auto both = v2(kinds);
      return cacheable_response(request, "application/json", both->json.body, both->json.tag);
    }
    for (const std::string_view name : kV2Names) {
      if (!range.matches(name)) continue;
      const auto both = v2(kinds);
      return cacheable_response(request, std::string(kOpenApiV2Type), both->protobuf.body,
                                both->protobuf.tag);
    }
  }
  return http::Response{.status = 406, .headers = {{"Cache-Control", "no-cache, private"}}};
}

std::optional<http::Response> OpenApi::serve(const std::shared_ptr<const KindTable>& kinds,
                                             const http::Request& request, const http::Url& url) {
  if (url.segments.size() < 2) return {};
  std::optional<http::Response> response;
  if (url.segments[1] == "v2" && url.segments.size() == 2) {
    response = serve_v2(kinds, request);
  } else if (url.segments[1] == "v3") {
    const auto all = documents(kinds);
    if (url.segments.size() == 2) return json_response(200, all->index);
    std::string path;
    for (std::size_t i = 2; i < url.segments.size(); ++i) {
      path += (path.empty() ? "" : "/") + url.segments[i];
    }
    const auto found = all->v3.find(path);
    if (found == all->v3.end()) return {};
    response =
        cacheable_response(request, "application/json", found->second.body, found->second.tag);
  }
  if (response) response->headers.emplace_back("Vary", "Accept");
  return response;
}

}  // namespace skiff::apiserver
