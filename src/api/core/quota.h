// The kinds ResourceQuota and LimitRange.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind resource_quota_kind();
Kind limit_range_kind();

}  // namespace skiff::api
