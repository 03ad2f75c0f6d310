// The kinds PodTemplate and ReplicationController. They are kept; no controller acts on them.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind pod_template_kind();
Kind replication_controller_kind();

}  // namespace skiff::api
