#include "features/trainer/builtin_runtimes.h"

#include "features/trainer/mpi.h"
#include "features/trainer/trainjob.h"

namespace skiff::trainer {
namespace {

// The version of upstream whose API this is.
constexpr std::string_view kVersion = "v2.3.0";
constexpr std::string_view kSystemNamespace = "kubeflow-system";

json::object part(std::string_view name, std::string_view step, json::object pod) {
  json::object job{{"spec", {{"template", {{"spec", std::move(pod)}}}}}};
  if (!step.empty()) {
    job["metadata"] = json::object{{"labels", {{kStepLabel, json::string(step)}}}};
  }
  return {{"name", json::string(name)}, {"template", std::move(job)}};
}

client::Write object(std::string_view name, std::string_view framework, json::object policy,
                     json::object jobset) {
  policy["numNodes"] = 1;
  return {.resource = cluster_runtime_resource(),
          .body = json::object{
              {"apiVersion", cluster_runtime_resource().api_version()},
              {"kind", cluster_runtime_resource().kind},
              {"metadata",
               {{"name", json::string(name)},
                {"labels", {{kFrameworkLabel, json::string(framework)}}}}},
              {"spec",
               {{"mlPolicy", std::move(policy)}, {"template", {{"spec", std::move(jobset)}}}}}}};
}

client::Write runtime(std::string_view name, std::string_view framework, std::string_view image,
                      json::object policy) {
  const json::object node{{"name", json::string(kNode)}, {"image", json::string(image)}};
  return object(name, framework, std::move(policy),
                {{"replicatedJobs",
                  json::array{part(kNode, kTrainerStep, {{"containers", json::array{node}}})}}});
}

// The launcher is one of the nodes. Both run as the user that these images have for it.
client::Write mpi_runtime(std::string_view name, std::string_view framework,
                          std::string_view image) {
  const json::object node{{"name", json::string(kNode)},
                          {"image", json::string(image)},
                          {"securityContext", {{"runAsUser", 1000}}}};
  json::object waiting = node;
  waiting["command"] = json::array{"/usr/sbin/sshd"};
  waiting["args"] = json::array{"-De", "-f", "/home/mpiuser/.sshd_config"};
  const auto pod = [](const json::object& container) {
    return json::object{{"securityContext", {{"fsGroup", 1000}}},
                        {"containers", json::array{container}}};
  };
  json::object launcher = part(kLauncher, kTrainerStep, pod(node));
  launcher["dependsOn"] =
      json::array{json::object{{"name", json::string(kNode)}, {"status", "Ready"}}};
  return object(
      name, framework,
      {{"mpi",
        {{"numProcPerNode", 1},
         {"mpiImplementation", "OpenMPI"},
         {"sshAuthMountPath", "/home/mpiuser/.ssh"},
         {"runLauncherAsNode", true}}}},
      {{"network", {{"publishNotReadyAddresses", true}}},
       {"successPolicy",
        {{"operator", "All"}, {"targetReplicatedJobs", json::array{json::string(kLauncher)}}}},
       {"replicatedJobs", json::array{part(kNode, {}, pod(waiting)), std::move(launcher)}}});
}

}  // namespace

std::vector<client::Write> builtin_objects() {
  const api::Resource spaces{
      .version = "v1", .plural = "namespaces", .kind = "Namespace", .namespaced = false};
  return {
      runtime("torch-distributed", "torch", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
              {{"torch", json::object{}}}),
      runtime("jax-distributed", "jax", "nvcr.io/nvidia/jax:25.10-py3", {{"jax", json::object{}}}),
      runtime("xgboost-distributed", "xgboost", "ghcr.io/kubeflow/trainer/xgboost-runtime",
              {{"xgboost", json::object{}}}),
      mpi_runtime("deepspeed-distributed", "deepspeed",
                  "ghcr.io/kubeflow/trainer/deepspeed-runtime"),
      mpi_runtime("mlx-distributed", "mlx", "ghcr.io/kubeflow/trainer/mlx-runtime"),
      runtime("plain", "plain", "python:3.12-slim", {}),
      {.resource = spaces,
       .body = {{"apiVersion", "v1"},
                {"kind", "Namespace"},
                {"metadata", {{"name", json::string(kSystemNamespace)}}}}},
      {.resource = config_map_resource(),
       .ns = std::string(kSystemNamespace),
       .body = {{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata",
                 {{"name", "kubeflow-trainer-public"},
                  {"namespace", json::string(kSystemNamespace)}}},
                {"data", {{"kubeflow_trainer_version", json::string(kVersion)}}}}},
  };
}

}  // namespace skiff::trainer
