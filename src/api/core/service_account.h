// The kind ServiceAccount.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind service_account_kind();

}  // namespace skiff::api
