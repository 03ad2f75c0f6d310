// The kind Endpoints.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind endpoints_kind();

}  // namespace skiff::api
