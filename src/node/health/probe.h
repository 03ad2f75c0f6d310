// Asks a container once how it is: by a command inside, HTTP, gRPC or a connection.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/json.h"
#include "node/health/probe_plan.h"
#include "node/runtime.h"

namespace skiff::node {

struct ProbeRequest {
  std::string pod_uid = {};
  std::string pod_ip = {};
  json::value container = {};  // its specification: name and named ports
  json::value handler = {};    // exec, httpGet, tcpSocket or grpc
  std::chrono::milliseconds timeout{1000};
  std::string purpose = "probe";  // kube-PURPOSE in the User-Agent
  bool any_status = false;        // any answer to an HTTP request is a good one
};

struct ProbeAnswer {
  ProbeOutcome outcome = ProbeOutcome::kSuccess;
  bool warning = false;  // a success that is worth an event
  std::string text = {};
};

// Blocks for at most the time-out or until the stop is asked for.
ProbeAnswer run_probe(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop);

// The number of a port that may be given by the name of one of the container's ports.
Result<int> probe_port(const json::value& container, const json::value& port);

// Where a redirect leads; nothing where that is another host.
std::optional<std::string> redirect_target(const std::string& url, std::string_view location);

}  // namespace skiff::node
