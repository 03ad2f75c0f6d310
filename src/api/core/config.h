// The kinds ConfigMap and Secret.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind config_map_kind();
Kind secret_kind();

}  // namespace skiff::api
