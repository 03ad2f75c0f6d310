// What `skiff up` runs.
#pragma once

#include "cli/cli.h"

namespace skiff::assembly {

// Starts the platform and waits for SIGTERM, SIGINT or a client's request to stop. The exit code.
int serve(const cli::UpOptions& options);

}  // namespace skiff::assembly
