// What all jobs that run mpirun share: files, variables and the remote shell of a launcher, and the
// programs that wait for it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace skiff::mpi {

inline constexpr std::string_view kFolder = "/etc/mpi";
inline constexpr std::string_view kHostFile = "/etc/mpi/hostfile";
inline constexpr std::string_view kRemoteShell = "/etc/mpi/kubexec.sh";
// The node gives pods with this annotation a kubectl: src/node/remote_shell.h.
inline constexpr std::string_view kRemoteShellAnnotation = "skiff.dev/remote-shell";

// The script that mpirun takes for a remote shell. It starts programs in the container of this
// name; empty: in a pod's first. A host is a pod's name.
std::string remote_shell(std::string_view container);
// The same where pods have other names than hosts: `pods` of a ConfigMap has lines HOST=POD, of
// those that run.
std::string remote_shell_by_map(std::string_view config_map, std::string_view container);

// What Open MPI reads, in its versions.
std::vector<std::pair<std::string, std::string>> open_mpi_variables();

// A container without a program of its own waits for what the launcher starts in it; so does one
// that was to be an sshd.
void make_wait(json::object& container);

}  // namespace skiff::mpi
