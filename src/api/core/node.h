// The kind Node.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind node_kind();

}  // namespace skiff::api
