// What is allowed in a pod's volumes, but hardly meant: kinds that are gone, files that hide
// others.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace skiff::api {

// `path` is that of the list.
void warn_of_volumes(const json::array& volumes, const std::string& path,
                     std::vector<std::string>& out);

}  // namespace skiff::api
