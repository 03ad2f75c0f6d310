// Kernel settings of a pod (spec.securityContext.sysctls): which may be set, and how they are
// called. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace skiff::node {

using Sysctls = std::vector<std::pair<std::string, std::string>>;

// With dots in their names, whichever form the pod has them in.
Sysctls pod_sysctls(const json::value& pod);

// Why the pod cannot run on this node: it asks for a setting that is not its own alone.
std::optional<std::string> forbidden_sysctl(const json::value& pod);

}  // namespace skiff::node
