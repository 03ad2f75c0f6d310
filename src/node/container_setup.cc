#include "node/container_setup.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "base/quantity.h"
#include "node/security.h"

namespace skiff::node {
namespace {

Quantity resource(const json::value& container, std::string_view list, std::string_view name) {
  const json::value* given = json::find(container, {"resources", list, name});
  return given == nullptr ? Quantity() : Quantity::from_json(*given).value_or(Quantity());
}

// The image's own user, unless the pod names another; their group and home are in the image too.
std::expected<image::User, Refusal> image_user(const SetupInput& input) {
  const auto uid = run_as(input.pod, input.container, "runAsUser");
  auto user = find_user(input.image.accounts, uid ? std::to_string(*uid) : input.image.user);
  if (!user) return std::unexpected(Refusal{"CreateContainerError", user.error().message});
  return std::move(*user);
}

// What is missing may come: the pod waits as one whose volumes are not there yet. What is wrong
// is told as an error.
Refusal volume_refusal(const Error& error) {
  const bool missing = error.code == Code::kNotFound;
  return {missing ? "ContainerCreating" : "CreateContainerError", error.message};
}

}  // namespace

std::expected<Setup, Refusal> set_up_container(SetupInput input) {
  const ResolvedImage* const image = &input.image;
  input.environment.image = image->env;
  input.environment.venv = image->venv;
  input.environment.host_image = image->host;
  std::optional<image::User> user;
  if (image->stored) {
    auto found = image_user(input);
    if (!found) return std::unexpected(found.error());
    user = std::move(*found);
    // Where this machine keeps its certificates and packages means nothing in there.
    input.environment.machine.clear();
    input.environment.image.insert(input.environment.image.begin(), {"HOME", user->home});
  }
  Result<Variables> variables = build_environment(input.environment);
  if (!variables) {
    return std::unexpected(Refusal{"CreateContainerConfigError", variables.error().message});
  }
  auto argv = command_line(input.container, *image, *variables);
  if (!argv) return std::unexpected(argv.error());
  Result<std::vector<Volume>> volumes = plan_volumes(input.environment);
  if (!volumes) return std::unexpected(volume_refusal(volumes.error()));

  Setup out;
  out.container = input.container;
  out.volumes = std::move(*volumes);
  out.spec.name = json::get_string(input.container, {"name"});
  out.spec.attempt = input.attempt;
  out.spec.rootfs = image->rootfs;
  out.spec.argv = std::move(*argv);
  for (const auto& [name, value] : *variables) out.spec.env.push_back(name + "=" + value);
  out.spec.working_dir = json::get_string(input.container, {"workingDir"}, image->working_dir);
  out.spec.mounts = image->mounts;
  if (user) {
    out.spec.uid = user->uid;
    out.spec.gid = user->gid;
    out.stored = image->stored;
  }
  if (auto secured = secure(input.pod, input.container, input.own_uid, out.spec); !secured) {
    return std::unexpected(std::move(secured.error()));
  }
  out.spec.oom_score_adj =
      oom_score(input.pod, input.container, input.environment.node_memory_bytes);
  out.spec.memory_limit_bytes = resource(input.container, "limits", "memory").value();
  out.spec.cpu_limit_milli = resource(input.container, "limits", "cpu").milli();
  out.spec.cpu_request_milli = resource(input.container, "requests", "cpu").milli();
  if (out.spec.cpu_request_milli == 0) out.spec.cpu_request_milli = out.spec.cpu_limit_milli;
  if (const auto path = json::get_string(input.container, {"terminationMessagePath"});
      !path.empty()) {
    out.spec.termination_path = path;
  }
  out.spec.stdin_open = json::get_bool(input.container, {"stdin"}).value_or(false);
  out.spec.stdin_once = json::get_bool(input.container, {"stdinOnce"}).value_or(false);
  out.spec.tty = json::get_bool(input.container, {"tty"}).value_or(false);
  out.spec.fallback_to_logs =
      json::get_string(input.container, {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  out.variables = std::move(*variables);
  return out;
}

std::size_t bytes_of(const std::vector<Volume>& volumes) {
  std::size_t out = 0;
  for (const Volume& volume : volumes) out += volume.file_bytes;
  return out;
}

std::size_t bytes_of(const Setup& setup) {
  std::size_t out = bytes_of(setup.volumes);
  for (const std::string& text : setup.spec.argv) out += text.size();
  for (const std::string& text : setup.spec.env) out += 2 * text.size();  // and its variable
  return out;
}

std::shared_ptr<void> hold(const std::shared_ptr<HeldBytes>& held, std::size_t bytes) {
  *held += bytes;
  return {nullptr, [held, bytes](void*) { *held -= bytes; }};
}

std::expected<ContainerSpec, Refusal> mount_volumes(Setup setup, const std::string& pod_folder,
                                                    const std::vector<std::string>& hidden) {
  // An image mapping shows no more of the machine than a volume may.
  const auto show = [&](std::string& path) -> Result<void> {
    SKIFF_ASSIGN(path, shown_path(path, hidden));
    return {};
  };
  Result<void> shown = {};
  if (!setup.spec.rootfs.empty()) shown = show(setup.spec.rootfs);
  for (Mount& mount : setup.spec.mounts) {
    if (shown) shown = show(mount.source);
  }
  if (!shown) {
    return std::unexpected(
        Refusal{"CreateContainerError", "the image's mapping: " + shown.error().message});
  }
  std::map<std::string, Place> places;
  for (const Volume& volume : setup.volumes) {
    Result<std::string> place = make_volume(pod_folder, volume, hidden);
    if (!place) return std::unexpected(volume_refusal(place.error()));
    places[volume.name] = {.path = std::move(*place), .read_only = volume.read_only};
    if (volume.kind == VolumeKind::kHostPath) places[volume.name].hidden = hidden;
    if (volume.kind == VolumeKind::kMemory) places[volume.name].memory_bytes = volume.memory_bytes;
  }
  auto mounts = container_mounts(setup.container, places, setup.variables);
  if (!mounts) {
    return std::unexpected(Refusal{"CreateContainerConfigError", mounts.error().message});
  }
  setup.spec.mounts.insert(setup.spec.mounts.end(), mounts->begin(), mounts->end());
  return std::move(setup.spec);
}

std::expected<ContainerSpec, Refusal> mount_hosts(ContainerSpec spec, const std::string& pod_folder,
                                                  const std::string& hosts) {
  const bool taken = std::any_of(spec.mounts.begin(), spec.mounts.end(),
                                 [](const Mount& mount) { return mount.target == "/etc/hosts"; });
  if (hosts.empty() || taken) return spec;
  const std::string path = shown_path(pod_folder, {}).value_or(pod_folder) + "/hosts";
  // In place: containers that run already have this very file mounted.
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << hosts << std::flush;
  if (!out) return std::unexpected(Refusal{"CreateContainerError", "cannot write " + path});
  spec.mounts.push_back({.source = path, .target = "/etc/hosts"});
  return spec;
}

}  // namespace skiff::node
