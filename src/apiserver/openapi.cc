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

void OpenApi::follow(const std::shared_ptr<const KindTable>& kinds) {
  if (kinds_ == kinds) return;
  kinds_ = kinds;
  index_.clear();
  v2_tags_ = {};
  std::erase_if(parts_, [&](const auto& one) {
    const api::Resource& r = one.second.kinds.front()->resource();
    return kinds->in(r.group, r.version).empty();
  });
}

OpenApi::Part& OpenApi::part(const std::string& group, const std::string& version) {
  Part& found = parts_[document_path(group, version)];
  const std::vector<ServedKindPtr>& kinds = kinds_->in(group, version);
  if (found.kinds != kinds) found = {.kinds = kinds};
  return found;
}

std::shared_ptr<const OpenApi::Document> OpenApi::v3(const std::string& group,
                                                     const std::string& version) {
  Part& one = part(group, version);
  if (one.v3 == nullptr) {
    ++written_;
    Document made{.body = json::serialize(openapi_v3(*kinds_, gate_, group, version))};
    made.tag = entity_tag(made.body);
    one.v3 = std::make_shared<const Document>(std::move(made));
  }
  return one.v3;
}

std::shared_ptr<const PartV2> OpenApi::v2(const std::string& group, const std::string& version,
                                          FormV2 form) {
  std::shared_ptr<const PartV2>& one = part(group, version).v2[static_cast<std::size_t>(form)];
  if (one == nullptr) {
    ++written_;
    one = std::make_shared<const PartV2>(
        openapi_v2_part(openapi_v3(*kinds_, gate_, group, version), form));
  }
  return one;
}

const std::string& OpenApi::index() {
  if (!index_.empty()) return index_;
  json::object paths;
  for (const KindTable::Group& group : kinds_->groups()) {
    for (const std::string& version : group.versions) {
      const std::string path = document_path(group.name, version);
      std::string hash = v3(group.name, version)->tag;
      std::erase(hash, '"');
      paths[path] =
          json::object{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash)}};
    }
  }
  index_ = json::serialize(json::object{{"paths", std::move(paths)}});
  return index_;
}

std::uint64_t OpenApi::written() const {
  const std::lock_guard guard(lock_);
  return written_;
}

http::Response OpenApi::whole_v2(const std::shared_ptr<const KindTable>& kinds,
                                 const http::Request& request, FormV2 form) {
  std::string type(form == FormV2::kJson ? "application/json" : kOpenApiV2Type);
  std::vector<std::shared_ptr<const PartV2>> parts;
  std::string tag;
  {
    const std::lock_guard guard(lock_);
    follow(kinds);
    for (const KindTable::Group& group : kinds->groups()) {
      for (const std::string& version : group.versions) {
        parts.push_back(v2(group.name, version, form));
      }
    }
    tag = v2_tags_[static_cast<std::size_t>(form)];
  }
  if (!tag.empty() && http::header(request.headers, "If-None-Match") == tag) {
    return cacheable_response(request, std::move(type), "", tag);
  }
  // Put together for each answer: whoever asks for so much does so rarely, and the parts are kept.
  const std::string body = openapi_v2(parts, form);
  if (tag.empty()) {
    tag = entity_tag(body);
    const std::lock_guard guard(lock_);
    if (kinds_ == kinds) v2_tags_[static_cast<std::size_t>(form)] = tag;
  }
  return cacheable_response(request, std::move(type), body, tag);
}

std::optional<http::Response> OpenApi::serve_v2(const std::shared_ptr<const KindTable>& kinds,
                                                const http::Request& request) {
  for (const MediaRange& range : parse_accept(http::header(request.headers, "Accept"))) {
    if (range.matches("application/json")) return whole_v2(kinds, request, FormV2::kJson);
    for (const std::string_view name : kV2Names) {
      if (range.matches(name)) return whole_v2(kinds, request, FormV2::kProtobuf);
    }
  }
  return http::Response{.status = 406, .headers = {{"Cache-Control", "no-cache, private"}}};
}

std::optional<http::Response> OpenApi::serve_v3(const std::shared_ptr<const KindTable>& kinds,
                                                const http::Request& request,
                                                const http::Url& url) {
  std::string path;
  for (std::size_t i = 2; i < url.segments.size(); ++i) {
    path += (path.empty() ? "" : "/") + url.segments[i];
  }
  for (const KindTable::Group& group : kinds->groups()) {
    for (const std::string& version : group.versions) {
      if (document_path(group.name, version) != path) continue;
      std::unique_lock guard(lock_);
      follow(kinds);
      const std::shared_ptr<const Document> found = v3(group.name, version);
      guard.unlock();
      return cacheable_response(request, "application/json", found->body, found->tag);
    }
  }
  return {};
}

std::optional<http::Response> OpenApi::serve(const std::shared_ptr<const KindTable>& kinds,
                                             const http::Request& request, const http::Url& url) {
  if (url.segments.size() < 2) return {};
  std::optional<http::Response> response;
  if (url.segments[1] == "v2" && url.segments.size() == 2) {
    response = serve_v2(kinds, request);
  } else if (url.segments[1] == "v3" && url.segments.size() == 2) {
    const std::lock_guard guard(lock_);
    follow(kinds);
    return json_response(200, index());
  } else if (url.segments[1] == "v3") {
    response = serve_v3(kinds, request, url);
  }
  if (response) response->headers.emplace_back("Vary", "Accept");
  return response;
}

}  // namespace skiff::apiserver
