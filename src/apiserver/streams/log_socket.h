// pods/NAME/log for clients that ask for it over a WebSocket: the same bytes, in messages.
#pragma once

#include "base/http.h"

namespace skiff::apiserver {

// `answer` as it is where the request asks for no WebSocket or nothing streams; 101 with a tunnel,
// or an error where the client speaks none of binary.k8s.io and base64.binary.k8s.io.
http::Response log_over_socket(const http::Request& request, http::Response answer);

}  // namespace skiff::apiserver
