// Runs a program in a container and takes what it says, for probes and hooks.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "node/runtime.h"

namespace skiff::node {

// As much as kubelet keeps of a probe's output; what comes after it is read and dropped.
inline constexpr std::size_t kExecOutputBytes = 10 * 1024;

struct ExecOutput {
  Result<int> exit_code = 0;  // kTimeout: the time was over, or the stop was asked for
  std::string output = {};    // stdout and stderr as they came
};

// `spec` names everything but the descriptors of the output. Zero: no limit of time.
ExecOutput exec_and_read(Runtime& runtime, std::string_view pod_uid, ExecSpec spec,
                         std::chrono::milliseconds timeout, const std::stop_token& stop);

}  // namespace skiff::node
