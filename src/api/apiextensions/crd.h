// The kind CustomResourceDefinition.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind crd_kind();

}  // namespace skiff::api
