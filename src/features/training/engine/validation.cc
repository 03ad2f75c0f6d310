#include "features/training/engine/validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "base/limits.h"
#include "base/names.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/labels.h"
#include "features/training/engine/managed_by.h"
#include "schema/causes.h"

namespace skiff::training {
namespace {

using schema::duplicate;
using schema::invalid;
using schema::required;
using schema::unsupported;

// A service is named after each replica, and a service's name is a DNS label.
constexpr std::size_t kLabelBytes = 63;

void check_name(const Job& job, std::vector<Cause>& causes) {
  const json::value name(json::string(job.name));
  for (const std::string& complaint : names::check_dns1035_label(job.name)) {
    causes.push_back(invalid("metadata.name", name, complaint));
  }
  if (!causes.empty()) return;
  for (const Role& role : job.roles) {
    if (role.replicas == 0) continue;
    const std::string longest = replica_name(job, role, role.replicas - 1);
    if (longest.size() <= kLabelBytes) continue;
    causes.push_back(invalid("metadata.name", name,
                             fmt::format("too long: the replica {} would have a name of {} "
                                         "characters, and a name may have {}",
                                         longest, longest.size(), kLabelBytes)));
    return;
  }
}

void check_managed_by(const Job& job, const api::Admission& context, std::vector<Cause>& causes) {
  const std::string field = "spec.runPolicy.managedBy";
  const std::string_view now = job.run.managed_by;
  if (!managed_here(now, job.kind->manager) && now != kMultiKueue) {
    std::vector<std::string> known{std::string(kOwnManager), std::string(kMultiKueue)};
    if (!job.kind->manager.empty()) known.emplace(known.begin(), job.kind->manager);
    causes.push_back(unsupported(field, json::string(now), std::move(known)));
  }
  if (context.old == nullptr) return;
  const std::string_view before =
      json::get_string(*context.old, {"spec", "runPolicy", "managedBy"});
  if (before != now) causes.push_back(invalid(field, json::string(now), "field is immutable"));
}

void check_queue(const json::value& object, const api::Admission& context,
                 std::vector<Cause>& causes) {
  if (context.old == nullptr) return;
  const auto queue = [](const json::value& job) {
    return json::get_string(job, {"spec", "runPolicy", "schedulingPolicy", "queue"});
  };
  if (queue(*context.old).empty() || queue(*context.old) == queue(object)) return;
  causes.push_back(invalid("spec.runPolicy.schedulingPolicy.queue", json::string(queue(object)),
                           "field is immutable once set"));
}

void check_restart(const json::value& object, std::vector<Cause>& causes) {
  const std::string_view given = api::annotation(object, kRestartAnnotation);
  if (given.empty() || given == kRestartGang || given == kRestartReplica) return;
  causes.push_back(unsupported(schema::entry("metadata.annotations", kRestartAnnotation),
                               json::string(given),
                               {std::string(kRestartGang), std::string(kRestartReplica)}));
}

void check_containers(const JobKind& kind, const std::string& path, const json::value& role,
                      std::vector<Cause>& causes) {
  const std::string field = path + ".template.spec.containers";
  const json::array& containers = json::get_array(role, {"template", "spec", "containers"});
  if (containers.empty()) {
    causes.push_back(required(field, "must hold at least one container"));
    return;
  }
  bool named = false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    named = named || json::get_string(containers[i], {"name"}) == kind.container;
    if (!json::get_string(containers[i], {"image"}).empty()) continue;
    causes.push_back(required(fmt::format("{}[{}].image", field, i), "must name an image"));
  }
  if (named || kind.any_container) return;
  causes.push_back(required(field, fmt::format("must hold a container named {}", kind.container)));
}

// Judges a key of the replica map; its path, for what is said about the role.
std::string check_role_key(const JobKind& kind, std::string_view key,
                           std::vector<std::string_view>& seen, std::vector<Cause>& causes) {
  std::string path = role_path(kind, key);
  const std::string_view role = canonical_role(kind, key);
  if (role.empty() || (role != key && !kind.roles_in_any_case)) {
    causes.push_back(unsupported(path, json::string(key), {kind.roles.begin(), kind.roles.end()}));
  } else if (std::ranges::find(seen, role) != seen.end()) {
    causes.push_back(duplicate(path, json::string(key)));
  } else {
    seen.push_back(role);
  }
  return path;
}

void check_roles(const JobKind& kind, const json::value& object, std::vector<Cause>& causes) {
  const std::string map = "spec." + kind.replicas_field;
  const json::object& roles = json::get_object(object, {"spec", kind.replicas_field});
  if (roles.empty()) {
    causes.push_back(required(map, "must hold at least one role"));
    return;
  }
  std::vector<std::string_view> seen;
  std::int64_t total = 0;
  constexpr auto kMost = static_cast<std::int64_t>(limits::kReplicasPerJob);
  for (const auto& [key, role] : roles) {
    const std::string path = check_role_key(kind, key, seen, causes);
    const std::int64_t replicas = json::get_int(role, {"replicas"}).value_or(1);
    total += std::clamp<std::int64_t>(replicas, 0, kMost + 1);
    check_containers(kind, path, role, causes);
  }
  if (total > kMost) {
    causes.push_back(invalid(map, total, fmt::format("a job may have {} replicas in all", kMost)));
  }
}

}  // namespace

std::string role_path(const JobKind& kind, std::string_view key) {
  return schema::entry(schema::child("spec", kind.replicas_field), key);
}

void check_single_master(const JobKind& kind, const json::value& object,
                         std::vector<Cause>& causes) {
  const json::value* master = json::find(object, {"spec", kind.replicas_field, "Master"});
  if (master == nullptr) return;
  const std::string field = role_path(kind, "Master") + ".replicas";
  const auto replicas = json::get_int(*master, {"replicas"});
  if (!replicas) {
    causes.push_back(required(field, "must be 1"));
  } else if (*replicas != 1) {
    causes.push_back(invalid(field, *replicas, "must be 1"));
  }
}

void check_elastic(const JobKind& kind, const json::value& object, std::vector<Cause>& causes) {
  const json::value* policy = json::find(object, {"spec", "elasticPolicy"});
  if (policy == nullptr || !policy->is_object()) return;
  if (!json::get_object(object, {"spec", kind.replicas_field}).contains("Worker")) {
    causes.push_back(required(role_path(kind, "Worker"), "an elasticPolicy needs a Worker role"));
  }
  const auto least = json::get_int(*policy, {"minReplicas"});
  const auto most = json::get_int(*policy, {"maxReplicas"});
  if (least && most && *least > *most) {
    causes.push_back(invalid("spec.elasticPolicy.minReplicas", *least,
                             fmt::format("must not be greater than maxReplicas, {}", *most)));
  }
}

std::vector<Cause> validate_job(const JobKind& kind, const json::value& object,
                                const api::Admission& context) {
  if (context.subresource == "status") return {};
  std::vector<Cause> causes;
  const Job job = read_job(kind, object);
  check_name(job, causes);
  check_managed_by(job, context, causes);
  check_queue(object, context, causes);
  check_restart(object, causes);
  check_roles(kind, object, causes);
  if (kind.validate != nullptr) kind.validate(object, causes);
  return causes;
}

}  // namespace skiff::training
