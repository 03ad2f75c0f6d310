#include "features/training/engine/pod_template.h"

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "features/training/engine/defaults.h"
#include "features/training/engine/gang.h"
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
  if (!job.run.queue.empty()) annotations[kQueueAnnotation] = json::string(job.run.queue);
  if (attempt > 0) annotations[kAttemptAnnotation] = std::to_string(attempt);
  metadata["ownerReferences"] = json::array{context.owner};
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

bool has_variable(const json::array& env, std::string_view name) {
  return std::ranges::any_of(
      env, [&](const json::value& var) { return json::get_string(var, {"name"}) == name; });
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
    const bool stands_in = !named && first;
    first = false;
    if ((is_named || stands_in) && kind.port != 0) add_port(kind, container);
    const bool trains = is_named || (stands_in && kind.any_container);
    if (env.empty() || (!trains && !kind.env_in_every_container)) continue;
    json::array& list = array_at(container, "env");
    const json::array given = list;
    list.reserve(list.size() + env.size());
    for (const EnvVar& var : env) {
      if (!var.yields || !has_variable(given, var.name)) list.push_back(render(var));
    }
  }
}

}  // namespace

json::array& array_at(json::object& object, std::string_view key) {
  json::value& member = object[key];
  return member.is_array() ? member.get_array() : member.emplace_array();
}

PodContext pod_context(const Job& job, std::int64_t absent) {
  return {.job = &job,
          .environment = job.kind->environment(job),
          .owner = api::owner_reference(*job.root),
          .gang_min = gang_min(job, absent)};
}

json::value render_pod(const PodContext& context, const Role& role, std::int64_t index,
                       std::int64_t attempt) {
  const Job& job = *context.job;
  json::object pod = *role.pod_template;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  write_metadata(context, role, index, attempt, pod);
  json::object& spec = json::make_object(pod, {"spec"});
  spec["restartPolicy"] = json::string(pod_restart_policy(role.restart, job.run.restart_gang));
  // A class that the template names is more particular than the job's.
  if (!job.run.priority_class.empty() && !spec.contains("priorityClassName")) {
    spec["priorityClassName"] = json::string(job.run.priority_class);
  }
  write_containers(context, role, index, spec);
  const JobKind& kind = *context.job->kind;
  if (kind.finish_pod != nullptr) kind.finish_pod(*context.job, role, pod);
  return pod;
}

}  // namespace skiff::training
