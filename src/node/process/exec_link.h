// Skiff's end of a program that a shim runs in one of its containers.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "node/runtime.h"

namespace skiff::node {

// Returns once the shim was asked; hanging up is what ends the program.
Result<std::unique_ptr<ExecSession>> exec_in_pod(const std::string& pod_folder,
                                                 const ExecSpec& spec);

}  // namespace skiff::node
