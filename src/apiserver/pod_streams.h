// What the API server asks of whoever runs pods: the bytes behind pods/NAME/log, exec, attach and
// portforward.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace skiff::apiserver {

struct LogOptions {
  std::string container = {};  // never empty: the server has chosen
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<Time> since = {};
  std::optional<std::int64_t> tail_lines = {};
  std::optional<std::int64_t> limit_bytes = {};
};

struct ExecOptions {
  std::string container = {};             // never empty: the server has chosen
  std::vector<std::string> command = {};  // exec
  bool in = false, out = false, err = false;
  bool tty = false;
};

// What somebody far away talks to in a pod: a program or a port. Destroying it hangs up, and kills
// a program that exec() began. From one thread at a time, but for `wake`.
class Peer {
 public:
  enum class Channel { kOut = 1, kErr = 2 };
  struct Piece {
    Channel channel = Channel::kOut;
    std::string bytes = {};
  };

  virtual ~Peer() = default;
  // Never blocks: what the program does not take yet is kept.
  virtual void write(std::string_view bytes) = 0;
  virtual std::size_t backlog() const = 0;  // bytes that the program has not taken yet
  virtual void end_input() = 0;
  virtual void resize(int columns, int rows) = 0;
  // What the program has said since; nothing where it is silent, and `wake` is called once when
  // there is more, or the end. False: it has ended, and all of it was given.
  virtual bool read(std::vector<Piece>& out, std::function<void()> wake) = 0;
  // After the end: the exit code, or why it could not be run.
  virtual Result<int> exit_code() = 0;
};

class PodStreams {
 public:
  virtual ~PodStreams() = default;
  virtual Result<std::unique_ptr<http::Stream>> logs(const json::value& pod,
                                                     const LogOptions& options) = 0;
  virtual Result<std::unique_ptr<Peer>> exec(const json::value& pod,
                                             const ExecOptions& options) = 0;
  // The container's own program.
  virtual Result<std::unique_ptr<Peer>> attach(const json::value& pod,
                                               const ExecOptions& options) = 0;
  // A port on the pod's loopback. Never waits; where nobody listens, the peer ends with the error.
  virtual std::unique_ptr<Peer> dial(const json::value& pod, int port) = 0;
};

}  // namespace skiff::apiserver
