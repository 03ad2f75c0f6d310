// What a container's program may do: users, groups and capabilities from a pod's securityContext,
// and which pod the kernel takes first when memory runs out. Pure.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "node/image.h"
#include "node/runtime.h"

namespace skiff::node {

// runAsUser or runAsGroup: the container's word, else the pod's.
std::optional<int> run_as(const json::value& pod, const json::value& container,
                          std::string_view field);

// Fills in what `spec` says about the program's rights. Where it names a user already, that is the
// image's; `own_uid` is who programs run as where neither names one.
std::expected<void, Refusal> secure(const json::value& pod, const json::value& container,
                                    int own_uid, ContainerSpec& spec);

// The group that the pod's volumes belong to; nothing: nobody's.
std::optional<int> volume_group(const json::value& pod);

// Kubelet's number for the kernel's out-of-memory killer: the higher, the sooner.
int oom_score(const json::value& pod, const json::value& container, std::int64_t node_memory_bytes);

// Kernel settings of a pod (spec.securityContext.sysctls).
using Sysctls = std::vector<std::pair<std::string, std::string>>;

// With dots in their names, whichever form the pod has them in.
Sysctls pod_sysctls(const json::value& pod);

// Why the pod cannot run on this node: it asks for a setting that is not its own alone.
std::optional<std::string> forbidden_sysctl(const json::value& pod);

}  // namespace skiff::node
