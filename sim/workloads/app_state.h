// What apps look like when all of them have what their specs ask for, counted from the objects
// alone and not with the controllers' own code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "sim/checker.h"

namespace skiff::sim {

bool job_ended(const json::value& job);  // Complete or Failed
bool pod_lives(const json::value& pod);  // neither ended nor on its way out
bool pod_ready(const json::value& pod);  // it lives and is ready
std::vector<Object> controlled_by(const std::vector<Object>& objects, const json::value& owner);

// 2 or "50%" of `total`.
std::int64_t share(const json::value* int_or_percent, std::int64_t total, bool round_up);

// What is not yet as it should be, as a sentence.
std::optional<std::string> unsettled_apps(const View& view);

}  // namespace skiff::sim
