// What to do about a reason why something waits. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace skiff::cli {

// A sentence for who reads this reason; empty where there is nothing to add.
std::string advice(std::string_view reason);

// What else holds of a training job: who runs it, its deadline, how far it is, and whether it has
// fallen silent.
std::vector<std::string> job_remarks(const json::value& job, Time now);

}  // namespace skiff::cli
