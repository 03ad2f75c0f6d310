#include "sim/workloads.h"

#include <array>
#include <utility>

#include "sim/echo.h"
#include "sim/workloads/apps.h"
#include "sim/workloads/jobs.h"
#include "sim/workloads/training.h"
#include "sim/workloads/trainjobs.h"

namespace skiff::sim {
namespace {

using Make = std::unique_ptr<Workload> (*)();

// One line for each.
constexpr std::array<std::pair<std::string_view, Make>, 5> kWorkloads = {{
    {"echo", [] { return make_echo(); }},
    {"training", [] { return make_training(); }},
    {"jobs", [] { return make_jobs(); }},
    {"trainjobs", [] { return make_trainjobs(); }},
    {"apps", [] { return make_apps(); }},
}};

}  // namespace

std::unique_ptr<Workload> make_workload(std::string_view name, std::uint64_t seed) {
  if (name.empty()) return kWorkloads[seed % kWorkloads.size()].second();
  for (const auto& [known, make] : kWorkloads) {
    if (known == name) return make();
  }
  return nullptr;
}

std::vector<std::string_view> workload_names() {
  std::vector<std::string_view> out;
  for (const auto& [name, make] : kWorkloads) out.push_back(name);
  return out;
}

}  // namespace skiff::sim
