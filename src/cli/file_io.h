// File descriptors of commands that carry bytes: pipes, and a listener on loopback.
#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace skiff::cli {

struct Pipe {
  Fd read = {}, write = {};
};
Result<Pipe> make_pipe();

// False where the other side is gone.
bool write_all(int fd, std::string_view bytes);

struct Listener {
  Fd fd = {};
  int port = 0;
};
// 0: any free port.
Result<Listener> listen_on_loopback(int port);

}  // namespace skiff::cli
