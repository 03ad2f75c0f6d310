// What files a container sees. The machine's own tree lies under an overlay whose upper layer is in
// the pod's folder, so everything can be read and no write leaves the pod; on top of it come the
// container's own /proc, /dev, /tmp, the pod's name files, masked folders and volumes.
//
// Every target is resolved inside the new root (openat2), so that a symbolic link in an image or in
// the machine's tree cannot lead a mount to the outside.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "node/runtime.h"

namespace skiff::node {

// In the shim's mount namespace, once for each pod: mounts the machine's tree at
// <pod folder>/rootfs. Where an overlay of it is impossible the tree is there read-only.
Result<void> mount_machine_root(const std::string& pod_folder);

// In the shim's mount namespace: the volumes of the pod that are kept in memory, each once. They
// are gone when the last process in the namespace is.
Result<void> mount_memory(const std::vector<Mount>& mounts);

struct RootRequest {
  std::string pod_folder = {};
  const SandboxSpec& sandbox;
  const ContainerSpec& container;
  std::string termination_file = {};  // on the machine; seen at the termination path
  bool own_network = false;
};

// In the container's mount and pid namespaces: mounts everything and makes it the root.
Result<void> enter_root(const RootRequest& request);

}  // namespace skiff::node
