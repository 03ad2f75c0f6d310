// Which processes must not be trusted as the user they run as: those of pods, and Skiff itself,
// which connects to wherever its tenants want.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>

namespace skiff::node {

// A process of a pod, this one or a descendant of it, or any server of Skiff's. True, too, where
// that cannot be found out. A pod that this process itself is in does not count.
bool is_untrusted(pid_t process);

// The control groups of pods that the text of /proc/PID/cgroup names, each up to the pod's own.
std::set<std::string> pod_groups(std::string_view cgroups);
// Whether this is `skiff up`, from the path of the program and /proc/PID/cmdline.
bool is_server(std::string_view program, std::string_view command_line);

}  // namespace skiff::node
