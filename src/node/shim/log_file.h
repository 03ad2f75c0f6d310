// The file that a container's output is written to. A full one is set aside under a number
// (node/log_files.h), and only the newest few are kept.
#pragma once

#include <cstdint>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "node/shim/files.h"

namespace skiff::node {

class LogFile {
 public:
  LogFile() = default;
  static Result<LogFile> open(const std::string& path,
                              std::int64_t bytes_max = limits::kLogFileBytes);

  int fd() const { return file_.get(); }
  // After writing. What cannot be set aside (a full disk) grows on.
  void rotate_where_full();
  void close() { file_.reset(); }

 private:
  std::string path_ = {};
  std::int64_t bytes_max_ = 0;
  int last_ = 0;  // number of the newest full one
  Fd file_ = {};
};

}  // namespace skiff::node
