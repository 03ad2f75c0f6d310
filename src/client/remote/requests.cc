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

json::value with_metadata(const Write& write) {
  json::value body = write.body;
  if (!write.uid.empty()) json::set(body, {"metadata", "uid"}, write.uid.c_str());
  if (!write.resource_version.empty()) {
    json::set(body, {"metadata", "resourceVersion"}, write.resource_version.c_str());
  }
  return body;
}

json::value with_tests(const Write& write) {
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
  return operations;
}

json::value delete_options(const Write& write) {
  json::value body = write.body.is_object() ? write.body : json::value(json::object{});
  json::set(body, {"apiVersion"}, "v1");
  json::set(body, {"kind"}, "DeleteOptions");
  if (!write.uid.empty()) json::set(body, {"preconditions", "uid"}, write.uid.c_str());
  if (!write.resource_version.empty()) {
    json::set(body, {"preconditions", "resourceVersion"}, write.resource_version.c_str());
  }
  return body;
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
  json::value body;
  std::string_view type = "application/json";
  switch (write.verb) {
    case Verb::kCreate:
      request.method = "POST";
      // A named create is of a sub-resource: pods/NAME/binding, serviceaccounts/NAME/token.
      if (write.subresource.empty()) {
        request.target = write.resource.collection_path(http::escape(write.ns));
      }
      body = write.body;
      break;
    case Verb::kUpdate:
      request.method = "PUT";
      body = with_metadata(write);
      break;
    case Verb::kMergePatch:
      request.method = "PATCH";
      type = "application/merge-patch+json";
      body = with_metadata(write);
      break;
    case Verb::kJsonPatch:
      request.method = "PATCH";
      type = "application/json-patch+json";
      body = with_tests(write);
      break;
    case Verb::kApply:
      request.method = "PATCH";
      type = "application/apply-patch+yaml";  // of which JSON is a part
      append_parameter(request.target, "fieldManager",
                       write.field_manager.empty() ? "skiff" : write.field_manager);
      if (write.force) append_parameter(request.target, "force", "true");
      body = with_metadata(write);
      break;
    case Verb::kDelete:
      request.method = "DELETE";
      body = delete_options(write);
      break;
  }
  request.headers.emplace_back("Content-Type", type);
  request.body = json::serialize(body);
  return request;
}

}  // namespace skiff::client
