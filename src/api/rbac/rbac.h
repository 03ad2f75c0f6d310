// The kinds Role, ClusterRole, RoleBinding and ClusterRoleBinding: who may do what, as objects.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> rbac_kinds();

}  // namespace skiff::api
