// A line in the log, with the time.
#pragma once

#include <string_view>

namespace skiff::assembly {

void log_line(std::string_view line);

}  // namespace skiff::assembly
