// Skiff's end of the conversation with a pod's shim.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/result.h"
#include "node/shim/files.h"

namespace skiff::node {

// Up to the end of the text; kTimeout after `patience_ms` without a byte.
Result<std::string> read_to_end(int fd, int patience_ms);
// kNotFound where no shim listens: a dead process has no open socket. Any other error says nothing
// about the shim.
Result<Fd> connect_shim(const std::string& pod_folder);
// The process at the other end.
Result<pid_t> shim_pid(const Fd& connection);
Result<void> ask_shim(const std::string& pod_folder, const json::object& request,
                      std::chrono::milliseconds patience);
// True where the process is gone by then.
bool wait_for_end(pid_t pid, std::chrono::milliseconds patience);

// One thread that hears from all shims: a byte for every change, end of file when a shim is gone.
class ShimWatch {
 public:
  // Called from the watch's thread; `gone` says that the shim is no more.
  explicit ShimWatch(std::function<void(const std::string& pod_uid, bool gone)> heard);
  ~ShimWatch();

  Result<void> add(const std::string& pod_uid, const std::string& pod_folder);
  void remove(const std::string& pod_uid);

 private:
  void run();
  void hear(int fd);

  const std::function<void(const std::string&, bool)> heard_;
  Fd epoll_ = {};
  Fd stop_ = {};
  std::mutex mutex_;
  std::map<int, std::string> uids_ = {};
  std::map<std::string, Fd> connections_ = {};
  std::thread thread_;
};

}  // namespace skiff::node
