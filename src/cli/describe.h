// An object in full for people: what it is, how it fares, what belongs to it, what happened. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::cli {

std::string describe_text(const json::value& object, const std::vector<Object>& pods,
                          const std::vector<Object>& events, Time now);

}  // namespace skiff::cli
