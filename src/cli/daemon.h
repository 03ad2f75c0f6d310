// The Skiff that runs with a data folder.
#pragma once

#include <string>

namespace skiff::cli {

// Its process, or 0 where none runs.
int running_pid(const std::string& data);

}  // namespace skiff::cli
