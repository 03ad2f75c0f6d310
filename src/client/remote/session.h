// Requests to one server as who we are: credentials that are renewed, at the pace that the server
// can take, and once more where it asks for that.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "client/remote/credentials.h"
#include "client/remote/pace.h"
#include "net/client.h"

namespace skiff::client {

struct SessionOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::string user_agent = "skiff";
  PaceOptions pace = {};
};

// Thread-safe.
class Session {
 public:
  using Stream = std::unique_ptr<net::StreamingResponse>;

  Session(Access access, SessionOptions options, Credentials::RunPlugin run = run_exec);

  // The answer whatever its status. One that asks to come again (429 or 5xx with Retry-After) is
  // obeyed while the time lasts; a 401 is tried once more with renewed credentials.
  Result<http::Response> send(const http::Request& request);
  // Returns when the head of the answer is there. A 401 is tried once more, nothing else.
  Result<Stream> open(const http::Request& request) { return open(http_, request); }

  // A way to open streams that can be cut off alone. It ends with the session, too.
  std::shared_ptr<net::Client> new_line();
  Result<Stream> open(net::Client& line, const http::Request& request);

  // From any thread: whatever waits, and every later call, fails.
  void shut_down();

  const Access& access() const { return credentials_.access(); }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  double per_second() const;
  bool stopped() const;

 private:
  using Clock = std::chrono::steady_clock;

  // To the server as who we are; made anew when that changes.
  Result<std::shared_ptr<const net::Route>> route(const Auth& auth);
  // Waits for our turn. An error where it comes after `end`.
  Result<void> take_turn(Clock::time_point end);
  void note(const http::Request& request, const Result<http::Response>& answer,
            Clock::duration took);

  const SessionOptions options_;
  Credentials credentials_;
  net::Client http_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const net::Route> route_ = {};
  std::uint64_t route_serial_ = 0;  // of the credentials in it
  std::condition_variable stopped_;
  bool stopping_ = false;
  Pace pace_;
  std::vector<std::weak_ptr<net::Client>> lines_;
};

// How long the answer asks us to stay away; nothing where it does not.
std::optional<Duration> retry_after(int status, const http::Headers& headers);

}  // namespace skiff::client
