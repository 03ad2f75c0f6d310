// CHECK is for bugs and stays on in release builds: a crash is cheap here, because a restart
// recovers everything from the store. `Result` is for the world.
#pragma once

#include <string_view>

namespace skiff {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace skiff

#define SKIFF_CHECK(condition, message)                                 \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::skiff::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                   \
  } while (false)
