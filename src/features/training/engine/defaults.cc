#include "features/training/engine/defaults.h"

#include <algorithm>

#include "api/meta.h"
#include "base/limits.h"
#include "base/strings.h"
#include "features/training/engine/labels.h"

namespace skiff::training {
namespace {

const json::object kEmpty;

RestartPolicy read_restart(std::string_view text, RestartPolicy fallback) {
  for (const RestartPolicy policy : {RestartPolicy::kAlways, RestartPolicy::kOnFailure,
                                     RestartPolicy::kNever, RestartPolicy::kExitCode}) {
    if (to_string(policy) == text) return policy;
  }
  return fallback;
}

CleanPodPolicy read_clean(std::string_view text, CleanPodPolicy fallback) {
  if (text == "All") return CleanPodPolicy::kAll;
  if (text == "Running") return CleanPodPolicy::kRunning;
  return text == "None" ? CleanPodPolicy::kNone : fallback;
}

std::optional<std::chrono::seconds> read_seconds(const json::value& policy, std::string_view key) {
  const std::optional<std::int64_t> n = json::get_int(policy, {key});
  // The API's own bound is an int32 of seconds; it also keeps sums with a time from overflowing.
  constexpr std::int64_t kMost = 1LL << 31;
  if (!n) return {};
  return std::chrono::seconds(std::clamp<std::int64_t>(*n, 0, kMost));
}

RunPolicy read_run_policy(const JobKind& kind, const json::value& root) {
  static const json::value kNone = json::object{};
  const json::value* policy = json::find(root, {"spec", "runPolicy"});
  if (policy == nullptr || !policy->is_object()) policy = &kNone;
  const std::optional<std::int64_t> limit = json::get_int(*policy, {"backoffLimit"});
  return {.clean_pods = read_clean(json::get_string(*policy, {"cleanPodPolicy"}), kind.clean_pods),
          .ttl = read_seconds(*policy, "ttlSecondsAfterFinished"),
          .active_deadline = read_seconds(*policy, "activeDeadlineSeconds"),
          .backoff_limit = limit ? limit : kind.backoff_limit,
          .suspend = json::get_bool(*policy, {"suspend"}).value_or(false),
          .managed_by = json::get_string(*policy, {"managedBy"}),
          .min_available = json::get_int(*policy, {"schedulingPolicy", "minAvailable"}),
          .queue = json::get_string(*policy, {"schedulingPolicy", "queue"}),
          .priority_class = json::get_string(*policy, {"schedulingPolicy", "priorityClass"}),
          .restart_gang = api::annotation(root, kRestartAnnotation) == kRestartGang};
}

std::int64_t read_port(const JobKind& kind, const json::object& pod_template) {
  const json::object* container = training_container(kind, pod_template);
  if (container == nullptr) return kind.port;
  const json::value* ports = container->if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return kind.port;
  for (const json::value& port : ports->get_array()) {
    if (json::get_string(port, {"name"}) != kind.port_name) continue;
    return json::get_int(port, {"containerPort"}).value_or(kind.port);
  }
  return kind.port;
}

Role read_role(const JobKind& kind, const json::value& root, std::string_view name,
               const json::value& spec) {
  const RestartPolicy restart =
      kind.default_restart == nullptr ? kind.restart : kind.default_restart(root, name);
  const json::value* pod_template = json::find(spec, {"template"});
  Role role{.name = std::string(name),
            .lower = lower(name),
            .replicas = json::get_int(spec, {"replicas"}).value_or(1),
            .restart = read_restart(json::get_string(spec, {"restartPolicy"}), restart),
            .pod_template = pod_template == nullptr ? nullptr : pod_template->if_object()};
  // Validation keeps every count within this; the clamp keeps a count that got past it from
  // costing more than memory for that many slots.
  constexpr auto kMost = static_cast<std::int64_t>(limits::kReplicasPerJob);
  role.replicas =
      std::clamp<std::int64_t>(role.replicas, 0, name == kind.unnumbered_role ? 1 : kMost);
  if (role.pod_template == nullptr) role.pod_template = &kEmpty;
  role.port = read_port(kind, *role.pod_template);
  return role;
}

}  // namespace

std::string_view canonical_role(const JobKind& kind, std::string_view key) {
  for (const std::string_view role : kind.roles) {
    if (equal_ignoring_case(role, key)) return role;
  }
  return {};
}

const json::object* training_container(const JobKind& kind, const json::object& pod_template) {
  const json::value* containers = json::find(pod_template, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return nullptr;
  const json::object* first = nullptr;
  for (const json::value& container : containers->get_array()) {
    if (!container.is_object()) continue;
    if (first == nullptr) first = container.if_object();
    if (json::get_string(container, {"name"}) == kind.container) return container.if_object();
  }
  return first;
}

Job read_job(const JobKind& kind, const json::value& root) {
  Job job{.kind = &kind,
          .root = &root,
          .name = api::name(root),
          .ns = api::ns(root),
          .uid = api::uid(root),
          .run = read_run_policy(kind, root)};
  const json::object& specs = json::get_object(root, {"spec", kind.replicas_field});
  for (const std::string_view role : kind.roles) {
    for (const auto& [key, spec] : specs) {
      if (canonical_role(kind, key) != role) continue;
      job.roles.push_back(read_role(kind, root, role, spec));
      break;  // validation refuses the same role twice
    }
  }
  return job;
}

}  // namespace skiff::training
