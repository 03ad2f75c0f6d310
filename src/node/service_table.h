// What each service's addresses lead to, from Services and their EndpointSlices. Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "node/net/service_rules.h"

namespace skiff::node {

// In the order of their addresses: equal tables are equal. Headless services are not in it.
std::vector<ServicePort> build_service_table(const std::vector<Object>& services,
                                             const std::vector<Object>& slices);

}  // namespace skiff::node
