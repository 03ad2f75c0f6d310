// pods/NAME/exec: what is asked for, whether it can be, and the tunnel to the program.
#pragma once

#include "apiserver/pod_streams.h"
#include "base/http.h"
#include "base/json.h"

namespace skiff::apiserver {

// An error, or 101 with a tunnel.
http::Response serve_exec(PodStreams* streams, const json::value& pod,
                          const http::Request& request, const http::Url& url);

}  // namespace skiff::apiserver
