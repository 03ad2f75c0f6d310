// The variables that tell a container where the services of its namespace are, as Docker's links
// once did: NAME_SERVICE_HOST, NAME_SERVICE_PORT, NAME_PORT_80_TCP_ADDR and so on. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/json.h"
#include "node/environment.h"

namespace skiff::node {

// By namespace and name.
using Services = std::map<std::pair<std::string, std::string>, Object>;

// None where the pod does not want them (enableServiceLinks). Services without an address of their
// own are not told, nor is the API's: the environment says where the API is, for every pod alike.
Variables service_links(const json::value& pod, const Services& services);

}  // namespace skiff::node
