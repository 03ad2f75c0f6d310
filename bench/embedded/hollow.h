// Nodes without machines: a thread that says of every pod bound to them that it runs and then that
// it has succeeded, one status write each, as a node agent would. Heartbeats as usual.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/embedded/world.h"

namespace skiff::bench {

// Pods with this label run until they are let go; all others end as soon as they run.
inline constexpr std::string_view kHeldLabel = "bench.skiff.dev/held";

class HollowNodes {
 public:
  // `pods_per_node`: 110 is what a kubelet takes.
  HollowNodes(EmbeddedWorld& world, int nodes, int pods_per_node = 110);
  ~HollowNodes();
  HollowNodes(const HollowNodes&) = delete;
  HollowNodes& operator=(const HollowNodes&) = delete;

  void let_go();
  std::size_t held_running() const { return held_running_; }

 private:
  void make_nodes(int nodes, int pods_per_node);
  void beat(bool first);
  void run();
  void serve(const Object& pod);
  void report(const json::value& pod, std::string_view phase);

  EmbeddedWorld& world_;
  std::unique_ptr<client::LocalClient> client_;
  std::vector<std::string> names_ = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = true;
  bool stopping_ = false;
  bool letting_go_ = false;
  std::atomic<std::size_t> held_running_ = 0;
  std::vector<Object> held_ = {};
  bool free_ = false;  // of the thread: the held ones have been let go
  std::thread thread_;
};

}  // namespace skiff::bench
