// Reading the log files that shims write (CRI lines, see node/shim/log_writer.h) as bodies of HTTP
// answers: `kubectl logs` with --tail, --since, --timestamps, --limit-bytes and --follow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/time.h"

namespace skiff::node {

struct LogRequest {
  std::string path = {};
  std::optional<std::int64_t> tail_lines = {};
  std::optional<Time> since = {};
  bool timestamps = false;
  std::optional<std::int64_t> limit_bytes = {};
  bool follow = false;
  // Asked, from several threads, while following: true once nothing more will be written.
  std::function<bool()> ended = {};
};

// Owns the one thread that wakes all followers. Streams may outlive it: they then end.
class LogReader {
 public:
  LogReader();
  ~LogReader();

  // A file that is not there reads as empty; a follower waits for it.
  std::unique_ptr<http::Stream> open(LogRequest request);

  class Waiters;

 private:
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace skiff::node
