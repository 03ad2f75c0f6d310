#include "client/remote/requests.h"

#include <fmt/format.h>

#include "base/check.h"

namespace skiff::client {
namespace {

void append_parameter(std::string& target, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  target += target.contains('?') ? '&' : '?';
  target += name;
  target += '=';
  target += http::escape(value);
}

// A server that does not know the first gives the second.
constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

bool has_preconditions(const Write& write) {
  const auto says = [&](std::string_view field, const std::string& wanted) {
    return wanted.empty() || json::get_string(write.body, {"metadata", field}) == wanted;
  };
  return says("uid", write.uid) && says("resourceVersion", write.resource_version);
}

std::string with_metadata(const Write& write) {
  // A status is sent with the whole object as it was seen; it need not be copied.
  if (has_preconditions(write)) return json::serialize(write.body);
  json::value body = write.body;
  if (!write.uid.empty()) json::set(body, {"metadata", "uid"}, write.uid.c_str());
  if (!write.resource_version.empty()) {
    json::set(body, {"metadata", "resourceVersion"}, write.resource_version.c_str());
  }
  return json::serialize(body);
}

std::string with_tests(const Write& write) {
  json::array operations;
  const auto test = [&](std::string_view path, const std::string& value) {
    if (value.empty()) return;
    operations.push_back(json::object{{"op", "test"}, {"path", path}, {"value", value}});
  };
  test("/metadata/uid", write.uid);
  test("/metadata/resourceVersion", write.resource_version);
  if (const json::array* given = write.body.if_array()) {
    operations.insert(operations.end(), given->begin(), given->end());
  }
  return json::serialize(operations);
}

std::string delete_options(const Write& write) {
  json::value body = write.body.is_object() ? write.body : json::value(json::object{});
  json::set(body, {"apiVersion"}, "v1");
  json::set(body, {"kind"}, "DeleteOptions");
  if (!write.uid.empty()) json::set(body, {"preconditions", "uid"}, write.uid.c_str());
  if (!write.resource_version.empty()) {
    json::set(body, {"preconditions", "resourceVersion"}, write.resource_version.c_str());
  }
  return json::serialize(body);
}

}  // namespace

std::string object_target(const api::Resource& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource) {
  return resource.path(http::escape(ns), http::escape(name), subresource);
}

std::string list_target(const api::Resource& resource, std::string_view ns,
                        const ListOptions& options, std::string_view limit, std::string_view next) {
  std::string target = resource.collection_path(http::escape(ns));
  append_parameter(target, "labelSelector", options.label_selector);
  append_parameter(target, "fieldSelector", options.field_selector);
  append_parameter(target, "limit", limit);
  append_parameter(target, "continue", next);
  return target;
}

std::string watch_target(const api::Resource& resource, std::uint64_t after_revision) {
  return fmt::format("{}?watch=1&allowWatchBookmarks=true&resourceVersion={}",
                     resource.collection_path({}), after_revision);
}

http::Request write_request(const Write& write) {
  http::Request request{.target =
                            object_target(write.resource, write.ns, write.name, write.subresource)};
  std::string_view type = "application/json";
  switch (write.verb) {
    case Verb::kCreate:
      request.method = "POST";
      // A named create is of a sub-resource: pods/NAME/binding, serviceaccounts/NAME/token.
      if (write.subresource.empty()) {
        request.target = write.resource.collection_path(http::escape(write.ns));
      }
      request.body = json::serialize(write.body);
      break;
    case Verb::kUpdate:
      request.method = "PUT";
      request.body = with_metadata(write);
      break;
    case Verb::kMergePatch:
      request.method = "PATCH";
      type = "application/merge-patch+json";
      request.body = with_metadata(write);
      break;
    case Verb::kJsonPatch:
      request.method = "PATCH";
      type = "application/json-patch+json";
      request.body = with_tests(write);
      break;
    case Verb::kApply:
      request.method = "PATCH";
      type = "application/apply-patch+yaml";  // of which JSON is a part
      append_parameter(request.target, "fieldManager",
                       write.field_manager.empty() ? "skiff" : write.field_manager);
      if (write.force) append_parameter(request.target, "force", "true");
      request.body = with_metadata(write);
      break;
    case Verb::kDelete:
      request.method = "DELETE";
      request.body = delete_options(write);
      break;
  }
  request.headers.emplace_back("Content-Type", type);
  return request;
}

http::Request brief_request(const Write& write) {
  http::Request request = write_request(write);
  if (write.verb == Verb::kDelete) return request;
  append_parameter(request.target, "fieldValidation", "Ignore");
  request.headers.emplace_back("Accept", kMetadataOnly);
  return request;
}

bool changes_nothing(const Write& write) {
  return write.verb == Verb::kMergePatch && write.subresource.empty() && write.body.is_object() &&
         write.body.get_object().empty();
}

http::Request metadata_request(const Write& write) {
  return {.target = object_target(write.resource, write.ns, write.name),
          .headers = {{"Accept", std::string(kMetadataOnly)}}};
}

}  // namespace skiff::client
