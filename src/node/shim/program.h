// The two processes of a container. The first is a small init: it puts the root together, starts
// the program, hands signals on to it and reaps whatever is left behind. It is needed because the
// kernel ignores SIGTERM for the first process of a pid namespace unless that process handles it,
// which most programs do not.
#pragma once

#include <string>

#include "base/result.h"
#include "node/cgroup/cgroup.h"
#include "node/runtime.h"

namespace skiff::node {

// How the program ended, written by init to the shim.
struct ExitReport {
  int exit_code = 0;
  int signal = 0;
};

// Asks init to kill every process of the container, for containers without a pid namespace, where
// killing init would leave its descendants alone.
int kill_all_signal();

struct InitRequest {
  std::string pod_folder = {};
  const SandboxSpec& sandbox;
  const ContainerSpec& container;
  std::string termination_file = {};
  const Cgroups& cgroups;
  std::string group = {};  // control group; empty: none
  bool privileged = false;
  bool own_network = false;
  bool led = false;  // where its calls lead is the shim's to say (node/loopback)
  int in_fd = -1;    // -1: /dev/null
  int out_fd = -1;
  int err_fd = -1;
  // A socket: init says that it will die with the shim, with the descriptor by which its calls are
  // led; and the shim says that it lives.
  int go_fd = -1;
  int error_fd = -1;   // a sentence where the program could not be started; closed by the exec
  int report_fd = -1;  // takes the ExitReport
};

struct ProgramRequest {
  const ContainerSpec& container;
  bool privileged = false;
  int in_fd = -1;  // -1: /dev/null
  int out_fd = -1;
  int err_fd = -1;
  int error_fd = -1;  // a sentence where it could not be started
  bool tty = false;   // in_fd is a terminal, and becomes the program's own
};
// Becomes the program, inside of the container's namespaces.
[[noreturn]] void run_program(const ProgramRequest& request);
// For a reaper without a pid namespace: ends everything that the program left running.
void kill_descendants();

// Runs as the container's first process, in its own pid namespace where privileged.
[[noreturn]] void run_init(const InitRequest& request);

// The file to run for argv[0], looked up in the PATH of `env`.
Result<std::string> find_program(const std::string& name, const std::vector<std::string>& env);

}  // namespace skiff::node
