// The process that holds one pod, and the one that it is forked from. Single-threaded; a shim knows
// only its pod's folder and answers on the socket in it (see wire.h). It ends when it is told to.
#pragma once

#include <string>

namespace skiff::node {

// What /proc calls a shim. Whoever descends from a process of this name is of a pod.
inline constexpr char kShimName[] = "skiff-shim";

// The nursery: argv is {"skiff", "shim", folders}, where `folders` is any text as long as the path
// of a pod's folder. Standard input is a SOCK_SEQPACKET socket: each message is a pod's folder and
// comes with a descriptor to which its shim, a child of the nursery, says "ready" or a sentence
// about what went wrong. It ends with its socket; the shims stay.
int shim_main(int argc, char** argv);

// The shim, as nursery.cc makes it: standard output is that descriptor.
int run_shim(const std::string& pod_folder);

}  // namespace skiff::node
