// The kinds of group networking.k8s.io: Ingress, IngressClass, NetworkPolicy.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> networking_kinds();

Kind ingress_kind();
Kind ingress_class_kind();
Kind network_policy_kind();

}  // namespace skiff::api
