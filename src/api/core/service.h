// The kind Service.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind service_kind();

}  // namespace skiff::api
