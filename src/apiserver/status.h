// Errors and plain answers as HTTP responses: the Status objects every Kubernetes client reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "apiserver/kinds.h"
#include "base/http.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

json::object status_body(const Error& error);
http::Response error_response(const Error& error);
// The router's own refusals: no such path, method or media type. Clients tell them from answers
// about an object by details that are there and empty.
http::Response routing_response(Code code, std::string_view message);
// What the real server says where something failed that it has no word for: 500 without reason.
http::Response unclassified_response(std::string_view message);
http::Response json_response(int status, std::string body);
http::Response text_response(int status, std::string body);

// The sentences of the real server, since people and scripts search for them.
Error not_found(const api::Resource& resource, std::string_view name);
Error already_exists(const api::Resource& resource, std::string_view name);
Error conflict(const api::Resource& resource, std::string_view name, std::string_view why);
Error modified(const api::Resource& resource, std::string_view name);
Error forbidden(const api::Resource& resource, std::string_view name, std::string_view why);
Error invalid(const api::Resource& resource, std::string_view name, std::vector<Cause> causes);
// The same about an object of a kind that may be kept as another group's.
Error invalid_object(const ServedKind& kind, std::string_view name, std::vector<Cause> causes);
Error method_not_allowed();
// About the query of a request: CreateOptions.meta.k8s.io "" is invalid.
Error invalid_options(std::string_view kind, std::vector<Cause> causes);

Cause required(std::string field, std::string_view detail = {});
Cause invalid_value(std::string field, const json::value& value, std::string_view detail);
Cause unsupported_value(std::string field, const json::value& value,
                        const std::vector<std::string>& supported);
Cause forbidden_value(std::string field, std::string_view detail);

}  // namespace skiff::apiserver
