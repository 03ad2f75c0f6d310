// Following the output of many pods at once, each line with its replica's name in its own colour.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "cli/context.h"

namespace skiff::cli {

struct FollowOptions {
  std::string container = {};  // empty: the pod's only or default one
  bool follow = true;
  bool timestamps = false;
  std::int64_t tail_lines = -1;
  bool colour = false;
  // Where lines go, each without its newline, from several threads; null: standard output.
  std::function<void(std::string_view line)> print = {};
  // Told of each line as the program wrote it, before it is printed; from several threads.
  std::function<void(std::string_view replica, std::string_view line)> hear = {};
};

// Thread-safe; one thread for each pod that is followed. The destructor waits for them.
class Follower {
 public:
  Follower(Connection& server, FollowOptions options);
  ~Follower();

  // Starts to follow the pods that are not followed yet.
  void add(const std::vector<Object>& pods);
  // Stops at the next line or end of each stream.
  void stop() { stopped_ = true; }
  // Waits until every pod followed so far has ended.
  void join();

 private:
  // How far one pod's output has been printed: a server that went away and came back gives it all
  // again.
  struct Progress {
    std::int64_t attempt = -1;
    std::size_t printed = 0;
    bool whole = true;  // the attempt's output ended and is printed
  };

  void follow_pod(const Object& pod, std::size_t number);
  // One container attempt; false when the pod has ended for good.
  bool follow_attempt(const json::value& followed, const std::string& prefix, Progress& progress);
  void print_lines(const json::value& pod, const std::string& prefix, Progress& progress);
  void print(const std::string& prefix, std::string_view line);  // what a terminal may see

  Connection& server_;
  const FollowOptions options_;
  std::atomic<bool> stopped_ = false;
  std::mutex output_;
  std::set<std::string, std::less<>> followed_;  // uids
  std::vector<std::jthread> threads_;
};

// What a terminal would show of a line in the end: a bar is drawn over and over, each time after a
// carriage return.
std::string_view last_drawn(std::string_view line);

// Whether none of its containers will run again.
bool pod_ended(const json::value& pod);

// worker-0 of a job's pod, else the pod's name.
std::string replica_name(const json::value& pod);

// The path and query of pods/NAME/log.
std::string log_target(std::string_view ns, std::string_view pod, const FollowOptions& options,
                       bool previous = false);

}  // namespace skiff::cli
