// The remote shell of pods that start programs in others: mpirun in its workers, say.
//
// A pod that asks for it finds this very binary at kRemoteShell. Under that name it is a kubectl,
// and with the pod's service account it may do there what that account may. So no image needs a
// client, an sshd or keys.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "node/runtime.h"

namespace skiff::node {

inline constexpr std::string_view kRemoteShellAnnotation = "skiff.dev/remote-shell";
inline constexpr std::string_view kRemoteShell = "/opt/kube/kubectl";

// Nothing where the pod does not ask, there is no binary to give, or the container has a mount of
// its own there or above.
void add_remote_shell(const json::value& pod, const json::value& container,
                      const std::string& binary, ContainerSpec& spec);

}  // namespace skiff::node
