// Starts the shims of pods, by asking one process that is forked for each of them.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>

#include "base/result.h"
#include "node/shim/files.h"

namespace skiff::node {

class Nursery {
 public:
  // `binary` is run as: BINARY shim POD-FOLDERS, when the first shim is wanted.
  Nursery(std::string binary, std::string pods_folder);
  // The process ends; the shims stay.
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // Waits until the shim is ready. From any thread.
  Result<void> start_shim(const std::string& pod_folder);

 private:
  Result<std::string> first_words(const std::string& pod_folder);
  Result<void> ask(const std::string& pod_folder, int output);
  Result<void> open();
  void close();

  const std::string binary_;
  const std::string pods_folder_;
  std::mutex mutex_;
  Fd socket_ = {};
  pid_t pid_ = 0;
};

}  // namespace skiff::node
