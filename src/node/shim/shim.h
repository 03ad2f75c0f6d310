// `skiff shim <pod folder>`: the process that holds one pod. Single-threaded; it knows only the
// pod's folder and answers on the socket in it (see wire.h). It ends when it is told to stop.
#pragma once

namespace skiff::node {

// argv is {"skiff", "shim", folder}. Goes to the background, and says on standard output "ready",
// or a sentence about what went wrong.
int shim_main(int argc, char** argv);

}  // namespace skiff::node
