// Reads and writes of client.h as HTTP requests. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/http.h"
#include "client/client.h"

namespace skiff::client {

// Paths are escaped: a name such as system:node is one segment.
std::string object_target(const api::Resource& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource = {});
std::string list_target(const api::Resource& resource, std::string_view ns,
                        const ListOptions& options, std::string_view limit, std::string_view next);
std::string watch_target(const api::Resource& resource, std::uint64_t after_revision);

// Preconditions go where a Kubernetes server looks for them: DeleteOptions.preconditions of a
// delete, metadata of an update or merge patch, test operations of a JSON patch.
http::Request write_request(const Write& write);
// The same for whoever reads nothing but metadata in the answer, and no warnings.
http::Request brief_request(const Write& write);

// A merge patch of nothing: it only asks whether its preconditions hold. Reading the object's
// metadata tells as much, and is far less work for a server.
bool changes_nothing(const Write& write);
http::Request metadata_request(const Write& write);

}  // namespace skiff::client
