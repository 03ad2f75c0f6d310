#include "features/training/kinds/mpi/mpi_pod.h"

#include <fmt/format.h>

#include "api/mpi.h"
#include "features/training/engine/labels.h"
#include "features/training/engine/pod_template.h"
#include "features/training/kinds/mpi/mpi_companions.h"
#include "features/training/kinds/mpi/mpi_settings.h"

namespace skiff::training {
namespace {

constexpr std::string_view kVolume = "mpi-job-config";
// By these the operator's own pages find the pods of v1alpha1 and v1alpha2.
constexpr std::string_view kAlphaGroupLabel = "group_name";
constexpr std::string_view kAlphaJobLabel = "mpi_job_name";
constexpr std::string_view kAlphaRoleLabel = "mpi_role_type";

json::object* job_container(const Job& job, json::object& spec) {
  json::object* first = nullptr;
  for (json::value& entry : array_at(spec, "containers")) {
    if (!entry.is_object()) continue;
    if (json::get_string(entry, {"name"}) == job.kind->container) return &entry.get_object();
    if (first == nullptr) first = &entry.get_object();
  }
  return first;
}

// Pods know each other by their own names, with the job's service behind them or not.
void give_name(const Job& job, json::object& pod, json::object& spec) {
  spec["hostname"] = pod.at("metadata").at("name");
  spec["subdomain"] = json::string(job.name);
  json::object& dns = json::make_object(spec, {"dnsConfig"});
  array_at(dns, "searches")
      .push_back(json::string(fmt::format("{}.{}.svc.cluster.local", job.name, job.ns)));
  const json::value* host = spec.if_contains("hostNetwork");
  if (host != nullptr && host->is_bool() && host->get_bool() && !spec.contains("dnsPolicy")) {
    spec["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
}

void give_labels(const Job& job, const Role& role, json::object& labels) {
  const std::string version = written_version(*job.root);
  if (version != "v1") labels[kJobRoleLabel] = role.lower;
  if (!version.starts_with("v1alpha")) return;
  labels[kAlphaGroupLabel] = "kubeflow.org";
  labels[kAlphaJobLabel] = json::string(job.name);
  labels[kAlphaRoleLabel] = role.lower;
}

json::value item(std::string_view key, int mode) {
  return {{"key", json::string(key)}, {"path", json::string(key)}, {"mode", mode}};
}

void give_files(const Job& job, json::object& spec, json::object& container) {
  array_at(spec, "volumes")
      .push_back({{"name", json::string(kVolume)},
                  {"configMap",
                   {{"name", mpi_config_name(job)},
                    {"items", json::array{item("kubexec.sh", 0555), item("hostfile", 0444),
                                          item("discover_hosts.sh", 0555)}}}}});
  array_at(container, "volumeMounts")
      .push_back({{"name", json::string(kVolume)}, {"mountPath", json::string(mpi::kFolder)}});
}

}  // namespace

void finish_mpi_pod(const Job& job, const Role& role, json::object& pod) {
  json::object& spec = json::make_object(pod, {"spec"});
  give_name(job, pod, spec);
  json::object* container = job_container(job, spec);
  give_labels(job, role, json::make_object(pod, {"metadata", "labels"}));
  if (role.name == kLauncher) {
    spec["serviceAccountName"] = mpi_account_name(job);
    json::make_object(pod, {"metadata", "annotations"})[mpi::kRemoteShellAnnotation] = "true";
  }
  if (container == nullptr) return;
  // To workers, too: the daemons that mpirun starts there insist that the remote shell exists.
  give_files(job, spec, *container);
  if (role.name != kLauncher) mpi::make_wait(*container);
}

}  // namespace skiff::training
