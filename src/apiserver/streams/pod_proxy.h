// pods/NAME:PORT/proxy/PATH: one HTTP request of a client, answered by a port of a pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/pod_streams.h"
#include "base/http.h"
#include "base/json.h"

namespace skiff::apiserver {

// [SCHEME:]NAME[:PORT], as the path has it. kBadRequest where it has another form.
struct ProxyName {
  std::string scheme = {};  // empty: http
  std::string pod = {};
  std::optional<int> port = {};
};
Result<ProxyName> parse_proxy_name(std::string_view name);

// What the pod is asked for: the path and query behind .../proxy, without the client's own ?token=.
std::string proxy_target(const http::Request& request);
// Whether two slashes stand together in front of .../proxy; what is behind is the pod's own affair.
bool proxy_gaps(std::string_view target);

// The request as the pod gets it, without what is between the client and Skiff alone. An error
// where it has what must not stand in a request.
Result<std::string> proxy_request(const http::Request& request, std::string_view target);

// The head of the pod's answer as the client gets it. A pod's page is shown under Skiff's own
// address: a browser must neither run it with Skiff's rights nor keep what it would for the whole
// address. So nothing is passed on that a browser could read in another way than it was read here.
struct ProxyHead {
  int status = 0;
  std::string text = {};
};
// `head`: lines with \r\n between them.
Result<ProxyHead> proxy_head(std::string_view head);

// An error, or status 0 with a tunnel that speaks HTTP itself.
http::Response serve_proxy(PodStreams* streams, const json::value& pod, const ProxyName& name,
                           const http::Request& request);

}  // namespace skiff::apiserver
