#include "features/training/kinds/mpi/mpi_companions.h"

#include <fmt/format.h>

#include "api/mpi.h"
#include "features/training/engine/labels.h"
#include "features/training/kinds/mpi/mpi_settings.h"

namespace skiff::training {
namespace {

std::string launcher_name(const Job& job) { return fmt::format("{}-launcher", job.name); }

json::value base(const Job& job, std::string_view api_version, std::string_view kind,
                 std::string name) {
  return {{"apiVersion", json::string(api_version)},
          {"kind", json::string(kind)},
          {"metadata",
           {{"name", std::move(name)},
            {"namespace", json::string(job.ns)},
            {"labels",
             {{"app", json::string(job.name)},
              {kJobLabel, json::string(job.name)},
              {kOperatorLabel, job.kind->controller}}}}}};
}

std::string host_line(const MpiSettings& settings, const std::string& host) {
  if (settings.as_v1 || settings.implementation == MpiImplementation::kOpenMpi) {
    return fmt::format("{} slots={}\n", host, settings.slots);
  }
  return fmt::format("{}:{}\n", host, settings.slots);
}

std::string host_file(const Job& job, const MpiSettings& settings) {
  std::string out;
  if (settings.launcher_works) {
    out += host_line(settings, mpi_host(job, settings, launcher_name(job)));
  }
  const Role* workers = job.role(kWorker);
  for (std::int64_t i = 0; workers != nullptr && i < workers->replicas; ++i) {
    out += host_line(settings, mpi_host(job, settings, replica_name(job, *workers, i)));
  }
  return out;
}

// For programs that can do with fewer workers, and take in those that come later.
std::string discover_hosts(const Job& job, const MpiSettings& settings, const Replicas& replicas) {
  std::string out = "#!/bin/sh\n";
  const auto add = [&](const std::string& pod) {
    const std::string host = mpi_host(job, settings, pod);
    out += settings.as_v1 ? fmt::format("echo {}:{}\n", host, settings.slots)
                          : fmt::format("echo {}\n", host);
  };
  if (settings.launcher_works) add(launcher_name(job));
  for (const RoleSlots& role : replicas.roles) {
    if (role.role->name != kWorker) continue;
    for (std::size_t i = 0; i < role.slots.size(); ++i) {
      const ReplicaPod& pod = role.slots[i].pod;
      if (pod.object == nullptr || pod.deleting || pod.phase != Phase::kRunning) continue;
      add(replica_name(job, *role.role, static_cast<std::int64_t>(i)));
    }
  }
  return out;
}

json::value config_map(const Job& job, const MpiSettings& settings, const Replicas& replicas) {
  json::value out = base(job, "v1", "ConfigMap", mpi_config_name(job));
  out.as_object()["data"] = {{"hostfile", host_file(job, settings)},
                             {"discover_hosts.sh", discover_hosts(job, settings, replicas)},
                             {"kubexec.sh", mpi::remote_shell(settings.main_container)}};
  return out;
}

// Programs may be started in this job's workers, and nowhere else.
json::value role_object(const Job& job, const MpiSettings& settings) {
  json::array names;
  const Role* workers = job.role(kWorker);
  for (std::int64_t i = 0; workers != nullptr && i < workers->replicas; ++i) {
    names.push_back(json::string(replica_name(job, *workers, i)));
  }
  if (settings.launcher_works) names.push_back(json::string(launcher_name(job)));
  json::array rules{json::object{{"apiGroups", json::array{""}},
                                 {"resources", json::array{"pods"}},
                                 {"verbs", json::array{"get", "list", "watch"}}}};
  // Without a name the rule would mean every pod. A WebSocket begins as a GET.
  if (!names.empty()) {
    rules.push_back({{"apiGroups", json::array{""}},
                     {"resources", json::array{"pods/exec"}},
                     {"resourceNames", std::move(names)},
                     {"verbs", json::array{"create", "get"}}});
  }
  json::value out = base(job, "rbac.authorization.k8s.io/v1", "Role", launcher_name(job));
  out.as_object()["rules"] = std::move(rules);
  return out;
}

json::value role_binding(const Job& job) {
  json::value out = base(job, "rbac.authorization.k8s.io/v1", "RoleBinding", launcher_name(job));
  out.as_object()["roleRef"] = {
      {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", launcher_name(job)}};
  out.as_object()["subjects"] = json::array{json::object{{"kind", "ServiceAccount"},
                                                         {"name", mpi_account_name(job)},
                                                         {"namespace", json::string(job.ns)}}};
  return out;
}

// Names are there before their pods are ready: the launcher looks workers up while they start.
json::value service(const Job& job) {
  json::value out = base(job, "v1", "Service", std::string(job.name));
  out.as_object()["spec"] = {
      {"clusterIP", "None"},
      {"selector", {{kJobLabel, json::string(job.name)}, {kOperatorLabel, job.kind->controller}}},
      {"publishNotReadyAddresses", true}};
  return out;
}

}  // namespace

std::vector<api::Resource> mpi_companion_kinds() {
  const std::string rbac = "rbac.authorization.k8s.io";
  return {{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"},
          {.version = "v1", .plural = "serviceaccounts", .kind = "ServiceAccount"},
          {.group = rbac, .version = "v1", .plural = "roles", .kind = "Role"},
          {.group = rbac, .version = "v1", .plural = "rolebindings", .kind = "RoleBinding"}};
}

std::string mpi_config_name(const Job& job) { return fmt::format("{}-config", job.name); }

std::string mpi_account_name(const Job& job) {
  const Role* launcher = job.role(kLauncher);
  if (launcher == nullptr) return launcher_name(job);
  const json::value* named = json::find(*launcher->pod_template, {"spec", "serviceAccountName"});
  if (named == nullptr || !named->is_string() || named->get_string().empty()) {
    return launcher_name(job);
  }
  return std::string(json::view(named->get_string()));
}

std::vector<json::value> mpi_companions(const Job& job, const Replicas& replicas) {
  const MpiSettings settings = read_mpi_settings(job);
  std::vector<json::value> out;
  out.push_back(service(job));
  out.push_back(config_map(job, settings, replicas));
  if (mpi_account_name(job) == launcher_name(job)) {
    out.push_back(base(job, "v1", "ServiceAccount", launcher_name(job)));
  }
  out.push_back(role_object(job, settings));
  out.push_back(role_binding(job));
  return out;
}

}  // namespace skiff::training
