#include "node/progress_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/meta.h"
#include "node/progress/progress_desk.h"
#include "node/volumes.h"

namespace skiff::node {
namespace {

constexpr std::string_view kFolder = "/progress";
constexpr std::string_view kTarget = "/var/run/skiff/progress";

std::string file_name(std::string_view container) {
  return "/" + std::string(container) + ".jsonl";
}

}  // namespace

bool trains(const json::value& pod) {
  return !api::label(pod, "training.kubeflow.org/job-name").empty() ||
         !api::label(pod, "jobset.sigs.k8s.io/jobset-name").empty();
}

bool leads_training(const json::value& pod) {
  const std::string_view role = api::label(pod, "training.kubeflow.org/job-role");
  return role == "master" || role == "launcher" ||
         api::label(pod, "training.kubeflow.org/replica-index") == "0" ||
         api::label(pod, "batch.kubernetes.io/job-completion-index") == "0";
}

std::string replica_shown(const json::value& pod) {
  const std::string role(api::label(pod, "training.kubeflow.org/replica-type"));
  if (role.empty()) return {};
  return role + "-" + std::string(api::label(pod, "training.kubeflow.org/replica-index"));
}

std::string progress_file(const std::string& pod_folder, std::string_view container) {
  return pod_folder + std::string(kFolder) + file_name(container);
}

std::expected<ContainerSpec, Refusal> mount_progress(ContainerSpec spec,
                                                     const std::string& pod_folder) {
  const std::string name = std::string(kProgressVariable) + "=";
  const bool told =
      std::ranges::any_of(spec.env, [&](const std::string& v) { return v.starts_with(name); });
  if (told) return spec;
  const std::string folder = shown_path(pod_folder, {}).value_or(pod_folder) + std::string(kFolder);
  // Whoever the program runs as may write there; nobody else's files are in it.
  constexpr mode_t kMode = 01777;
  const bool made = ::mkdir(folder.c_str(), kMode) == 0 || errno == EEXIST;
  if (!made || ::chmod(folder.c_str(), kMode) != 0) {
    return std::unexpected(
        Refusal{"CreateContainerError", "cannot make " + folder + ": " + std::strerror(errno)});
  }
  // What an earlier attempt wrote is not this one's progress. Where the program put something else
  // there it stays, and is not read.
  (void)::unlink((folder + file_name(spec.name)).c_str());
  spec.mounts.push_back({.source = folder, .target = std::string(kTarget)});
  spec.env.push_back(name + std::string(kTarget) + file_name(spec.name));
  return spec;
}

}  // namespace skiff::node
