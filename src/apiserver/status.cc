#include "apiserver/status.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::apiserver {
namespace {

json::object details_of(const Error& error) {
  json::object details;
  if (!error.name.empty()) details["name"] = error.name;
  if (!error.group.empty()) details["group"] = error.group;
  if (!error.resource.empty()) details["kind"] = error.resource;
  if (!error.causes.empty()) {
    json::array& causes = details["causes"].emplace_array();
    for (const Cause& cause : error.causes) {
      json::object entry;
      if (!cause.reason.empty()) entry["reason"] = cause.reason;
      if (!cause.message.empty()) entry["message"] = cause.message;
      if (!cause.field.empty()) entry["field"] = cause.field;
      causes.emplace_back(std::move(entry));
    }
  }
  if (error.retry_after_s) details["retryAfterSeconds"] = *error.retry_after_s;
  return details;
}

Error about(Code code, const api::Resource& resource, std::string_view name, std::string message) {
  return Error{.code = code,
               .message = std::move(message),
               .group = resource.group,
               .resource = resource.plural,
               .name = std::string(name)};
}

}  // namespace

json::object status_body(const Error& error) {
  json::object body{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", json::object()},
                    {"status", "Failure"},
                    {"message", error.message}};
  if (!reason(error.code).empty()) body["reason"] = reason(error.code);
  json::object details = details_of(error);
  if (!details.empty()) body["details"] = std::move(details);
  body["code"] = http_code(error.code);
  return body;
}

http::Response error_response(const Error& error) {
  http::Response response =
      json_response(http_code(error.code), json::serialize(status_body(error)));
  if (error.retry_after_s) {
    response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
  }
  return response;
}

http::Response routing_response(Code code, std::string_view message) {
  json::object body = status_body({.code = code, .message = std::string(message)});
  json::object ordered;
  for (const auto& member : body) {
    if (member.key() == "code") ordered["details"] = json::object();
    ordered[member.key()] = member.value();
  }
  return json_response(http_code(code), json::serialize(ordered));
}

http::Response unclassified_response(std::string_view message) {
  json::object body = status_body({.code = Code::kInternal, .message = std::string(message)});
  body.erase("reason");
  return json_response(500, json::serialize(body));
}

http::Response json_response(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-cache, private"}},
          .body = std::move(body)};
}

http::Response text_response(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"Cache-Control", "no-cache, private"},
                      {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(body)};
}

Error not_found(const api::Resource& resource, std::string_view name) {
  return about(Code::kNotFound, resource, name,
               fmt::format("{} \"{}\" not found", resource.key(), name));
}

Error already_exists(const api::Resource& resource, std::string_view name) {
  return about(Code::kAlreadyExists, resource, name,
               fmt::format("{} \"{}\" already exists", resource.key(), name));
}

Error conflict(const api::Resource& resource, std::string_view name, std::string_view why) {
  return about(
      Code::kConflict, resource, name,
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.key(), name, why));
}

Error modified(const api::Resource& resource, std::string_view name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Error forbidden(const api::Resource& resource, std::string_view name, std::string_view why) {
  const std::string what =
      name.empty() ? resource.key() : fmt::format("{} \"{}\"", resource.key(), name);
  return about(Code::kForbidden, resource, name, fmt::format("{} is forbidden: {}", what, why));
}

Error invalid(const api::Resource& resource, std::string_view name, std::vector<Cause> causes) {
  return schema::invalid_error(resource.kind, resource.group, name, std::move(causes));
}

Error invalid_object(const ServedKind& kind, std::string_view name, std::vector<Cause> causes) {
  api::Resource resource = kind.resource();
  // What is kept as another group's is judged as that.
  if (kind.kind.kept_in_group) resource.group = *kind.kind.kept_in_group;
  return invalid(resource, name, std::move(causes));
}

Error method_not_allowed() {
  return {.code = Code::kMethodNotAllowed,
          .message = "the server does not allow this method on the requested resource"};
}

Error invalid_options(std::string_view kind, std::vector<Cause> causes) {
  return invalid({.group = "meta.k8s.io", .kind = std::string(kind)}, "", std::move(causes));
}

Cause required(std::string field, std::string_view detail) {
  return {.field = std::move(field),
          .reason = "FieldValueRequired",
          .message = detail.empty() ? "Required value" : fmt::format("Required value: {}", detail)};
}

Cause invalid_value(std::string field, const json::value& value, std::string_view detail) {
  return {.field = std::move(field),
          .reason = "FieldValueInvalid",
          .message = fmt::format("Invalid value: {}: {}",
                                 value.is_string() ? go_quoted(json::view(value.get_string()))
                                                   : json::serialize(value),
                                 detail)};
}

Cause unsupported_value(std::string field, const json::value& value,
                        const std::vector<std::string>& supported) {
  std::string list;
  for (const std::string& word : supported) {
    list += (list.empty() ? "\"" : ", \"") + word + "\"";
  }
  return {.field = std::move(field),
          .reason = "FieldValueNotSupported",
          .message = fmt::format("Unsupported value: {}: supported values: {}",
                                 json::serialize(value), list)};
}

Cause forbidden_value(std::string field, std::string_view detail) {
  return {.field = std::move(field),
          .reason = "FieldValueForbidden",
          .message = fmt::format("Forbidden: {}", detail)};
}

}  // namespace skiff::apiserver
