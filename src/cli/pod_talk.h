// Talking to a program in a pod, or to a port of it, over a WebSocket.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace skiff::cli {

struct Talk {
  std::string ns = {}, pod = {}, container = {};
  std::vector<std::string> command = {};  // empty: the container's own program (attach)
  // -1: not wanted.
  int in_fd = -1;
  int out_fd = 1;
  int err_fd = 2;
  bool tty = false;  // in_fd is a terminal: it is made raw meanwhile, and its size passed on
};

// Until the program ends: its exit code. What stands between (a lost connection, a missing
// container) is the error.
Result<int> talk_to_program(Connection& server, const Talk& talk);

// For who ends the process meanwhile: the terminal is as it was. Safe in a signal's handler.
void restore_terminal();

// The path and query that asks for it.
std::string talk_target(const Talk& talk);

// Listens at 127.0.0.1:`local` (0: any) and carries every connection to the pod's `remote`, until
// the process ends. Returns the port it listens on; each connection has threads of its own.
Result<int> forward_port(Connection& server, const std::string& ns, const std::string& pod,
                         int local, int remote);

}  // namespace skiff::cli
