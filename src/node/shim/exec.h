// A program run beside a container's own, for probes, hooks and `kubectl exec`.
#pragma once

#include <vector>

#include "base/result.h"
#include "node/shim/container.h"
#include "node/shim/files.h"

namespace skiff::node {

// Forks a guard that enters the container, runs the program and answers on `connection` when it
// ended: {"exitCode": N}, or {"error": ...} where it could not be run. The shim itself never waits.
// The program is killed when the caller hangs up, when the container ends and when the shim does.
// `streams` are stdin, stdout and stderr. The answer asks where the program's calls lead; not valid
// where nobody is to be asked.
Result<Fd> start_exec(const PodContext& pod, const Container& container, const ExecSpec& spec,
                      const Fd& connection, const std::vector<Fd>& streams);

}  // namespace skiff::node
