// The objects that people make in the workload of apps, each a little different.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/random.h"

namespace skiff::sim {

inline constexpr std::string_view kVersion = "sim.skiff.dev/version";  // annotation of a template
inline constexpr std::string_view kPoolLabel = "sim.skiff.dev/pool";   // label of some nodes
inline constexpr std::string_view kPool = "a";

using AppBody = json::value (*)(std::string_view name, Random& random);

json::value deployment_body(std::string_view name, Random& random);
json::value stateful_set_body(std::string_view name, Random& random);
json::value daemon_set_body(std::string_view name, Random& random);
json::value replica_set_body(std::string_view name, Random& random);
json::value replication_controller_body(std::string_view name, Random& random);
json::value cron_job_body(std::string_view name, Random& random);
json::value budget_body(std::string_view name, Random& random);
json::value service_body(std::string_view name);

}  // namespace skiff::sim
