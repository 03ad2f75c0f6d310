#include "cli/train/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/train/framework.h"

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
// trains in is theirs, be it /tmp: it is mounted, so that models and checkpoints are there
// afterwards. Skiff's data cannot be; what holds it can, and shows an empty folder there.
std::vector<std::string> folders_to_mount(const TrainOptions& options) {
  std::vector<std::string> out;
  const std::string script_folder = options.script.substr(0, options.script.rfind('/'));
  for (const std::string& folder : {options.working_dir, script_folder}) {
    const bool known = std::ranges::find(out, folder) != out.end();
    const bool data = !options.data.empty() && (folder + "/").starts_with(options.data + "/");
    if (folder.empty() || folder == "/" || known || data) continue;
    out.push_back(folder);
  }
  return out;
}

struct Mounts {
  json::array volumes = {};
  json::array mounts = {};

  void add(json::object volume, const std::string& path, bool read_only) {
    json::object mount = {{"name", volume["name"]}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    volumes.push_back(std::move(volume));
    mounts.push_back(std::move(mount));
  }
};

Result<Mounts> all_mounts(const TrainOptions& options) {
  Mounts out;
  if (!options.code.empty()) {
    out.add(code_volume(options.code), std::string(kCodeFolder), true);
  } else {
    for (const std::string& folder : folders_to_mount(options)) {
      const std::string name = fmt::format("folder-{}", out.volumes.size());
      out.add({{"name", name}, {"hostPath", {{"path", folder}}}}, folder, false);
    }
  }
  for (const std::string& path : options.datasets) {
    const std::string name = fmt::format("dataset-{}", out.volumes.size());
    out.add({{"name", name}, {"hostPath", {{"path", path}}}}, path, true);
  }
  for (const std::string& claim : options.claims) {
    const std::size_t colon = claim.find(":/");
    if (colon == std::string::npos || colon == 0) {
      return fail(Code::kBadRequest, fmt::format("--claim {}: write NAME:/path", claim));
    }
    const std::string name = fmt::format("claim-{}", out.volumes.size());
    out.add({{"name", name}, {"persistentVolumeClaim", {{"claimName", claim.substr(0, colon)}}}},
            claim.substr(colon + 1), false);
  }
  return out;
}

json::array command_of(const TrainOptions& options, const TrainFramework& framework) {
  json::array command;
  if (!framework.launcher.empty()) {
    command.emplace_back("mpirun");
    command.emplace_back("-np");
    command.emplace_back(std::to_string(options.workers * options.nproc));
  }
  command.emplace_back(options.python);
  // torchrun starts the processes of a pod; it finds the others by the PET_ variables.
  if (options.nproc > 1 && framework.launcher.empty()) {
    command.emplace_back("-m");
    command.emplace_back("torch.distributed.run");
  }
  command.emplace_back(options.code.empty() ? options.script
                                            : fmt::format("{}/{}", kCodeFolder, options.script));
  for (const std::string& argument : options.arguments) command.emplace_back(argument);
  return command;
}

json::object replica(const TrainOptions& options, const TrainFramework& framework,
                     const json::array& env, const Mounts& mounts, int count, bool runs) {
  json::object program = {{"name", json::string(framework.container)},
                          {"image", options.image},
                          {"env", env},
                          {"resources", resources(options)}};
  if (runs) program["command"] = command_of(options, framework);
  program["workingDir"] = options.code.empty() ? options.working_dir : std::string(kCodeFolder);
  json::object pod;
  if (!mounts.volumes.empty()) {
    pod["volumes"] = mounts.volumes;
    program["volumeMounts"] = mounts.mounts;
  }
  pod["containers"] = json::array{std::move(program)};
  return {{"replicas", count},
          {"restartPolicy", options.retries > 0 ? "OnFailure" : "Never"},
          {"template", {{"spec", std::move(pod)}}}};
}

Result<void> check(const TrainOptions& options, const TrainFramework& framework) {
  if (options.workers < 1) return fail(Code::kBadRequest, "--workers must be at least 1");
  if (options.nproc < 1) return fail(Code::kBadRequest, "--nproc must be at least 1");
  if (options.ps < 0) return fail(Code::kBadRequest, "--ps cannot be negative");
  if (options.ps > 0 && framework.servers.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("--ps: {} has no parameter servers, leave it out", framework.name));
  }
  if (options.nproc > 1 && framework.processes.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("--nproc: {} has one process in each pod; ask for more --workers",
                            framework.name));
  }
  return {};
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
  const TrainFramework* framework = find_framework(options.framework);
  if (framework == nullptr) {
    return fail(Code::kBadRequest,
                fmt::format("--framework {}: write {}", options.framework, framework_names()));
  }
  SKIFF_TRY(check(options, *framework));
  SKIFF_ASSIGN(const json::array env, environment(options.env));
  SKIFF_ASSIGN(const Mounts mounts, all_mounts(options));
  const bool launched = !framework->launcher.empty();  // the workers wait for who starts them
  const auto replicas_of = [&](int count) {
    return replica(options, *framework, env, mounts, count, !launched);
  };
  json::object spec = {
      {"runPolicy", {{"cleanPodPolicy", "Running"}, {"backoffLimit", options.retries}}}};
  json::object replicas;
  if (launched) replicas[framework->launcher] = replica(options, *framework, env, mounts, 1, true);
  if (options.ps > 0) replicas[framework->servers] = replicas_of(options.ps);
  // Worker 0 of N may have a role of its own: rank 0 of N processes.
  const int first = framework->first.empty() ? 0 : 1;
  if (first > 0) replicas[framework->first] = replicas_of(first);
  if (options.workers > first) replicas["Worker"] = replicas_of(options.workers - first);
  spec[framework->replicas_field] = std::move(replicas);
  // Every worker's work counts, not only the first's.
  if (!framework->all_workers_policy.empty()) {
    spec["successPolicy"] = json::string(framework->all_workers_policy);
  }
  // MPI's field is a number, PyTorch's a text, which may also say auto.
  if (launched) {
    spec[framework->processes] = options.nproc;
  } else if (options.nproc > 1) {
    spec[framework->processes] = std::to_string(options.nproc);
  }
  return json::value{{"apiVersion", fmt::format("kubeflow.org/{}", framework->version)},
                     {"kind", json::string(framework->kind)},
                     {"metadata", {{"name", options.name}, {"namespace", options.ns}}},
                     {"spec", std::move(spec)}};
}

}  // namespace skiff::cli
