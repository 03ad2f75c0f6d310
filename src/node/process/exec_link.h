// Skiff's end of what a shim lets others do in its pod: run programs, talk to them, reach ports.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "node/runtime.h"

namespace skiff::node {

// Returns once the shim was asked; hanging up is what ends the program.
Result<std::unique_ptr<ExecSession>> exec_in_pod(const std::string& pod_folder,
                                                 const ExecSpec& spec);
// As Runtime::attach() and Runtime::open_socket().
Result<int> attach_in_pod(const std::string& pod_folder, std::string_view container, bool input,
                          int out_fd, int err_fd);
Result<int> socket_in_pod(const std::string& pod_folder, bool v6);

}  // namespace skiff::node
