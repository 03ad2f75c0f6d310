// The kind Event.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind event_kind();

}  // namespace skiff::api
