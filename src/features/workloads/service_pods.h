// What a Service says about the pods it selects: which are behind it, at which address and port.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace skiff::workloads {

// Whether pods stand behind the service: it has a selector and is no ExternalName.
bool selects_pods(const json::value& service);
bool headless(const json::value& service);
bool publishes_not_ready(const json::value& service);
// IPv4 and IPv6, in the order of spec.ipFamilies.
std::vector<std::string> families(const json::value& service);

// Whether the pod has an address and has not ended.
bool reachable(const json::value& pod);
// The pod's address of that family; empty where it has none, or none that may be published.
std::string address(const json::value& pod, std::string_view family);
// The service's ports as this pod has them, {name, port, protocol, appProtocol}, in the service's
// order. A port whose name the pod does not know is left out.
json::array ports_of(const json::value& service, const json::value& pod);
// Whether the change of a pod changes nothing of what services say about it.
bool alike_to_services(const json::value& before, const json::value& after);
// nodeName, hostname and targetRef, which both kinds of endpoint have.
json::object about_pod(const json::value& service, const json::value& pod);

}  // namespace skiff::workloads
