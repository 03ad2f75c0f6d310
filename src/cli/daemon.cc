#include "cli/daemon.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

namespace skiff::cli {

// The running Skiff holds a lock on <data>/lock for its whole life, and its pid stands inside.
int running_pid(const std::string& data) {
  const int fd = open((data + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  int pid = 0;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    if (read(fd, text, sizeof text - 1) > 0) pid = std::atoi(text);
  }
  close(fd);
  return pid;
}

}  // namespace skiff::cli
