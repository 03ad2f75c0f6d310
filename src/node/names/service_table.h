// What each service's addresses lead to, from Services and their EndpointSlices. Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "node/net/service_rules.h"

namespace skiff::node {

// In the order of their addresses: equal tables are equal. Headless services are not in it. `api`
// (0: nowhere) stands behind default/kubernetes, at the service's port and at its own: pods are
// told of that one. Endpoints on the loopback are led to only where they are such pods.
std::vector<ServicePort> build_service_table(const std::vector<Object>& services,
                                             const std::vector<Object>& slices,
                                             const ServiceTarget& api = {},
                                             bool loopback_pods = false);

}  // namespace skiff::node
