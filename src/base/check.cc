#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace skiff {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "skiff: bug at %s:%d: %s is false: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace skiff
