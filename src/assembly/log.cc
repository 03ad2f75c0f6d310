#include "assembly/log.h"

#include <fmt/format.h>

#include "base/time.h"
#include "env/posix/clock.h"

namespace skiff::assembly {

void log_line(std::string_view line) {
  const Time now = env::posix::Clock().now();
  fmt::print(stderr, "{} {}\n", rfc3339_micro(now), line);
}

}  // namespace skiff::assembly
