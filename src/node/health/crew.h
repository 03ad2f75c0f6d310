// Threads for work that may take long: a slow probe holds up neither the agent nor other pods.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace skiff::node {

class Crew {
 public:
  // Work looks at the token where it waits; it is asked to stop once, when the crew goes.
  using Work = std::function<void(const std::stop_token&)>;

  // Threads are made when nobody is idle, up to `most`; beyond that work waits for its turn.
  explicit Crew(std::size_t most) : most_(most) {}
  ~Crew() { stop(); }

  // From any thread. After stop() work is dropped.
  void run(Work work);
  void stop();

 private:
  void serve();

  const std::size_t most_;
  std::stop_source stop_ = {};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Work> waiting_ = {};
  std::size_t idle_ = 0;
  std::vector<std::thread> threads_ = {};
};

}  // namespace skiff::node
