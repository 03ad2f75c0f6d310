#include "features/training/engine/job.h"

#include <fmt/format.h>

#include <numeric>

#include "features/training/engine/job_kind.h"

namespace skiff::training {

std::string_view to_string(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kExitCode:
      return "ExitCode";
  }
  return "Never";
}

const json::value& Job::spec() const {
  static const json::value kNone = json::object{};
  const json::value* found = json::find(*root, {"spec"});
  return found == nullptr ? kNone : *found;
}

const Role* Job::role(std::string_view role_name) const {
  for (const Role& role : roles) {
    if (role.name == role_name) return &role;
  }
  return nullptr;
}

std::int64_t Job::replicas() const {
  return std::accumulate(roles.begin(), roles.end(), std::int64_t{0},
                         [](std::int64_t sum, const Role& role) { return sum + role.replicas; });
}

std::string replica_name(const Job& job, const Role& role, std::int64_t index) {
  if (role.name == job.kind->unnumbered_role) return fmt::format("{}-{}", job.name, role.lower);
  return fmt::format("{}-{}-{}", job.name, role.lower, index);
}

std::string subject(const Job& job) {
  return fmt::format("{} {}/{}", job.kind->resource.kind, job.ns, job.name);
}

}  // namespace skiff::training
