// The roles and bindings that every cluster has, and how a server that starts brings them about.
#pragma once

#include <vector>

#include "base/json.h"

namespace skiff::apiserver {

// ClusterRole and ClusterRoleBinding objects, as the real server makes them.
const std::vector<json::value>& bootstrap_policy();

// What `existing` (a role or binding of that list, as it is stored) must become so that nothing of
// `expected` is missing: null where it is fine, or where its owner has set the annotation
// rbac.authorization.kubernetes.io/autoupdate to false. What was added to it stays.
json::value reconciled(const json::value& existing, const json::value& expected);

}  // namespace skiff::apiserver
