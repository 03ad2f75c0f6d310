// Ports of the machine that pods ask for. A pod that was put on this node past the scheduler, whose
// port another has, is refused. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace skiff::node {

// The sentence for the pod's status where one of its host ports is taken by one of the others.
std::optional<std::string> port_clash(const json::value& pod, const std::vector<Object>& others);

bool wants_host_ports(const json::value& pod);

}  // namespace skiff::node
