// Asks a container how it is by gRPC's own health protocol.
#pragma once

#include "node/health/probe.h"

namespace skiff::node {

// Blocks for at most the time-out or until the stop is asked for.
ProbeAnswer probe_grpc(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop);

}  // namespace skiff::node
