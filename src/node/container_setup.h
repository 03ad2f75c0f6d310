// From a container of a pod to what the runtime is asked to start.
#pragma once

#include <atomic>
#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/client.h"
#include "node/environment.h"
#include "node/image.h"
#include "node/runtime.h"
#include "node/volumes.h"

namespace skiff::node {

struct SetupInput {
  const json::value& pod;  // with its address in status.podIP
  const json::value& container;
  int attempt = 0;
  const ResolvedImage& image;
  int own_uid = 0;               // who programs run as where nobody says it
  EnvironmentInput environment;  // image, venv and host_image are filled in here
};

// Everything but the mounts of volumes, which need the disk.
struct Setup {
  ContainerSpec spec = {};
  Variables variables = {};
  std::vector<Volume> volumes = {};
  json::value container = {};
  std::optional<image::StoredImage> stored = {};  // whose layers are to be its files
  bool trains = false;                            // it gets a file to tell its progress in
};

// Environment, arguments and files that it holds, all of which somebody else chose.
std::size_t bytes_of(const Setup& setup);
std::size_t bytes_of(const std::vector<Volume>& volumes);

// What jobs hold that wait for a worker: a small pod can name much, and there may be many pods.
using HeldBytes = std::atomic<std::size_t>;
// How long a pod waits that finds them too many.
inline constexpr std::chrono::milliseconds kStartingPause(200);
// Counts the bytes until the last copy of what is returned has gone.
std::shared_ptr<void> hold(const std::shared_ptr<HeldBytes>& held, std::size_t bytes);

// Pure but for the lookup of config maps and secrets.
std::expected<Setup, Refusal> set_up_container(SetupInput input);

// Makes the volumes on disk and adds their mounts to the specification.
std::expected<ContainerSpec, Refusal> mount_volumes(Setup setup, const std::string& pod_folder,
                                                    const std::vector<std::string>& hidden);

// Puts /etc/hosts with this text into the container, unless it has a mount of its own there or the
// text is empty. Only here the pod's address is known, which belongs in it.
std::expected<ContainerSpec, Refusal> mount_hosts(ContainerSpec spec, const std::string& pod_folder,
                                                  const std::string& hosts);

}  // namespace skiff::node
