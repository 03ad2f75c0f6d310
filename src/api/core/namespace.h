// The kind Namespace.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind namespace_kind();

}  // namespace skiff::api
