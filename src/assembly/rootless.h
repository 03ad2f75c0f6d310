// Skiff of an ordinary user: it moves into namespaces where it is root, and what must stay outside
// (the sockets that clients come to) is made before.
#pragma once

#include <memory>
#include <string>

#include "assembly/data_folder.h"
#include "cli/cli.h"
#include "net/socket_owner.h"

namespace skiff::assembly {

// Kept while the process lives, over every start of the platform in it.
struct Outside {
  bool entered = false;
  int https = -1, http = -1;  // listening sockets; -1: to be made
  std::shared_ptr<net::SocketOwners> owners = {};
};

// Tells the log what pods get. Where the machine does not allow it pods share its network; an error
// is one that Skiff cannot start with.
Result<void> move_inside(const DataFolder& folder, const cli::UpOptions& options, Outside& outside);

// As clean_up(), for namespaces that are still held; `skiff sweep DATA` runs it in a process of its
// own, because only one with a single thread can enter them.
bool needs_sweep(const std::string& data);
Result<void> sweep(const std::string& data);
// Removes the data folder of an ordinary user with what only his namespace may remove (`skiff sweep
// DATA purge`).
Result<void> purge(const std::string& data);
int sweep_main(int argc, char** argv);

}  // namespace skiff::assembly
