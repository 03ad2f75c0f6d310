// The kind Lease: who leads, and whether a node is alive.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind lease_kind();

}  // namespace skiff::api
