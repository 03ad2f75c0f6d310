// pods/NAME/log: which container is meant, whether it can have logs, and then the bytes.
#pragma once

#include "apiserver/pod_streams.h"
#include "base/http.h"
#include "base/json.h"

namespace skiff::apiserver {

// The container that is asked for, or the only one. kBadRequest with the choice there is.
Result<std::string> choose_container(const json::value& pod, const std::string& asked);

// `streams` may be null where nobody runs pods.
http::Response serve_logs(PodStreams* streams, const json::value& pod, const http::Url& url,
                          Time now);

}  // namespace skiff::apiserver
