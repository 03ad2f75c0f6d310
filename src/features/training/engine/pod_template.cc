#include "features/training/engine/pod_template.h"

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/labels.h"
#include "features/training/engine/restart_policy.h"
#include "features/training/engine/services.h"

namespace skiff::training {
namespace {

void write_metadata(const PodContext& context, const Role& role, std::int64_t index,
                    std::int64_t attempt, json::object& pod) {
  const Job& job = *context.job;
  json::object& metadata = json::make_object(pod, {"metadata"});
  metadata.erase("generateName");
  metadata["name"] = replica_name(job, role, index);
  metadata["namespace"] = json::string(job.ns);
  json::object& labels = json::make_object(metadata, {"labels"});
  for (const auto& [key, value] : replica_labels(job, role, index)) labels[key] = value;
  if (job.kind->is_master(job, role, index)) labels[kJobRoleLabel] = "master";
  json::object& annotations = json::make_object(metadata, {"annotations"});
  annotations[kGangAnnotation] = json::string(job.uid);
  annotations[kGangMinAnnotation] = std::to_string(context.gang_min);
  if (attempt > 0) annotations[kAttemptAnnotation] = std::to_string(attempt);
  metadata["ownerReferences"] = json::array{context.owner};
}

json::array& array_at(json::object& object, std::string_view key) {
  json::value& member = object[key];
  return member.is_array() ? member.get_array() : member.emplace_array();
}

// The framework's port, unless the user has named one so.
void add_port(const JobKind& kind, json::object& container) {
  json::array& ports = array_at(container, "ports");
  for (const json::value& port : ports) {
    if (json::get_string(port, {"name"}) == kind.port_name) return;
  }
  ports.push_back({{"name", kind.port_name}, {"containerPort", kind.port}, {"protocol", "TCP"}});
}

json::value render(const EnvVar& var) {
  if (var.field.empty()) return {{"name", var.name}, {"value", var.value}};
  return {{"name", var.name},
          {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", var.field}}}}}};
}

void write_containers(const PodContext& context, const Role& role, std::int64_t index,
                      json::object& spec) {
  const JobKind& kind = *context.job->kind;
  const std::vector<EnvVar> env = context.environment(role, index);
  json::array& containers = array_at(spec, "containers");
  const bool named = std::ranges::any_of(containers, [&](const json::value& container) {
    return json::get_string(container, {"name"}) == kind.container;
  });
  bool first = true;
  for (json::value& entry : containers) {
    if (!entry.is_object()) continue;
    json::object& container = entry.get_object();
    const bool is_named = json::get_string(entry, {"name"}) == kind.container;
    if (is_named || (!named && first)) add_port(kind, container);
    first = false;
    if (env.empty() || (!is_named && !kind.env_in_every_container)) continue;
    json::array& list = array_at(container, "env");
    list.reserve(list.size() + env.size());
    for (const EnvVar& var : env) list.push_back(render(var));
  }
}

}  // namespace

PodContext pod_context(const Job& job, std::int64_t succeeded) {
  // A replica that is done takes no place any more: were it counted, the replacement of another
  // would wait for it for ever.
  const std::int64_t left = std::max<std::int64_t>(job.replicas() - succeeded, 1);
  return {.job = &job,
          .environment = job.kind->environment(job),
          .owner = api::owner_reference(*job.root),
          .gang_min = std::clamp<std::int64_t>(job.run.min_available.value_or(left), 1, left)};
}

json::value render_pod(const PodContext& context, const Role& role, std::int64_t index,
                       std::int64_t attempt) {
  json::object pod = *role.pod_template;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  write_metadata(context, role, index, attempt, pod);
  json::object& spec = json::make_object(pod, {"spec"});
  spec["restartPolicy"] = json::string(pod_restart_policy(role.restart));
  write_containers(context, role, index, spec);
  return pod;
}

}  // namespace skiff::training
