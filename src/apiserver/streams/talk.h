// pods/NAME/exec, attach and portforward: what is asked for, whether it can be, and the tunnel.
#pragma once

#include <string_view>

#include "apiserver/pod_streams.h"
#include "base/http.h"
#include "base/json.h"

namespace skiff::apiserver {

// True for the subresources that serve_talk() answers.
bool is_talk(std::string_view subresource);
// An error, or 101 with a tunnel.
http::Response serve_talk(std::string_view subresource, PodStreams* streams, const json::value& pod,
                          const http::Request& request, const http::Url& url);

}  // namespace skiff::apiserver
