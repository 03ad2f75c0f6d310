#include "cli/train_manifest.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::cli {
namespace {

Result<json::array> environment(const std::vector<std::string>& pairs) {
  json::array out = {json::object{{"name", "PYTHONUNBUFFERED"}, {"value", "1"}}};
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Code::kBadRequest, fmt::format("--env {}: write NAME=value", pair));
    }
    out.push_back(
        json::object{{"name", pair.substr(0, equals)}, {"value", pair.substr(equals + 1)}});
  }
  return out;
}

json::object resources(const TrainOptions& options) {
  json::object amounts;
  if (!options.cpu.empty()) amounts["cpu"] = options.cpu;
  if (!options.memory.empty()) amounts["memory"] = options.memory;
  if (options.gpus > 0) amounts["nvidia.com/gpu"] = std::to_string(options.gpus);
  if (amounts.empty()) return {};
  return {{"requests", amounts}, {"limits", amounts}};
}

// What a program writes stays private to its pod, and a pod has its own /tmp. The folder a person
// trains in is theirs: it is mounted, so that models and checkpoints are there afterwards. A folder
// that holds Skiff's data cannot be.
std::vector<std::string> folders_to_mount(const TrainOptions& options) {
  std::vector<std::string> out;
  const std::string script_folder = options.script.substr(0, options.script.rfind('/'));
  for (const std::string& folder : {options.working_dir, script_folder}) {
    const bool known = std::ranges::find(out, folder) != out.end();
    const bool holds_data = (options.data + "/").starts_with(folder + "/");
    if (folder.empty() || folder == "/" || folder == "/tmp" || known || holds_data) continue;
    out.push_back(folder);
  }
  return out;
}

void add_mounts(const std::vector<std::string>& folders, json::object& pod,
                json::object& container) {
  if (folders.empty()) return;
  json::array volumes, mounts;
  for (const std::string& folder : folders) {
    const std::string name = fmt::format("folder-{}", volumes.size());
    volumes.push_back(json::object{{"name", name}, {"hostPath", {{"path", folder}}}});
    mounts.push_back(json::object{{"name", name}, {"mountPath", folder}});
  }
  pod["volumes"] = std::move(volumes);
  container["volumeMounts"] = std::move(mounts);
}

json::object replica(const TrainOptions& options, std::string_view container, json::array env,
                     int count) {
  json::array command = {json::string(options.python), json::string(options.script)};
  for (const std::string& argument : options.arguments) command.emplace_back(argument);
  json::object program = {{"name", json::string(container)}, {"image", json::string(kHostImage)},
                          {"command", std::move(command)},   {"workingDir", options.working_dir},
                          {"env", std::move(env)},           {"resources", resources(options)}};
  json::object pod;
  add_mounts(folders_to_mount(options), pod, program);
  pod["containers"] = json::array{std::move(program)};
  return {{"replicas", count},
          {"restartPolicy", options.retries > 0 ? "OnFailure" : "Never"},
          {"template", {{"spec", std::move(pod)}}}};
}

}  // namespace

std::string job_name_from(std::string_view script) {
  const std::size_t slash = script.rfind('/');
  if (slash != std::string_view::npos) script.remove_prefix(slash + 1);
  script = script.substr(0, script.rfind('.'));
  std::string out;
  for (const char c : script) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && !out.empty())) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  out = out.substr(0, 40);
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "train" : out;
}

Result<json::value> train_manifest(const TrainOptions& options) {
  if (options.script.starts_with("/tmp/") && options.script.rfind('/') == 4) {
    return fail(Code::kBadRequest,
                fmt::format("{}: a pod has its own /tmp; put the script into a folder of its own",
                            options.script));
  }
  if (options.workers < 1) return fail(Code::kBadRequest, "--workers must be at least 1");
  if (options.ps < 0) return fail(Code::kBadRequest, "--ps cannot be negative");
  SKIFF_ASSIGN(json::array env, environment(options.env));
  json::object replicas;
  json::object spec = {
      {"runPolicy", {{"cleanPodPolicy", "Running"}, {"backoffLimit", options.retries}}}};
  std::string_view kind;
  if (options.framework == "tensorflow") {
    kind = "TFJob";
    if (options.ps > 0) replicas["PS"] = replica(options, "tensorflow", env, options.ps);
    replicas["Worker"] = replica(options, "tensorflow", env, options.workers);
    // With parameter servers the workers decide; every worker's work counts, not only the first's.
    spec["successPolicy"] = "AllWorkers";
    spec["tfReplicaSpecs"] = std::move(replicas);
  } else if (options.framework == "pytorch") {
    if (options.ps > 0) {
      return fail(Code::kBadRequest,
                  "--ps belongs to TensorFlow: PyTorch has no parameter servers, leave it out");
    }
    kind = "PyTorchJob";
    // Worker 0 of N is the master: rank 0 of N processes.
    replicas["Master"] = replica(options, "pytorch", env, 1);
    if (options.workers > 1) {
      replicas["Worker"] = replica(options, "pytorch", env, options.workers - 1);
    }
    spec["pytorchReplicaSpecs"] = std::move(replicas);
  } else {
    return fail(Code::kBadRequest,
                fmt::format("--framework {}: write tensorflow or pytorch", options.framework));
  }
  return json::value{{"apiVersion", "kubeflow.org/v1"},
                     {"kind", json::string(kind)},
                     {"metadata", {{"name", options.name}, {"namespace", options.ns}}},
                     {"spec", std::move(spec)}};
}

}  // namespace skiff::cli
