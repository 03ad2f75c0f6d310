// The loop: the one thread that owns caches, queues, timers and every plan. No locks there, because
// nothing is shared; others hand it functions.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.h"

namespace skiff::assembly {

class Loop {
 public:
  Loop() = default;
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs `turn` on a new thread whenever it is woken or the time that its last call returned has
  // passed. Functions that were posted run before it.
  void start(std::function<Duration()> turn);
  void stop();

  // From any thread.
  void post(std::function<void()> fn);
  void wake();
  // That its thread has taken so far; between start() and stop().
  double cpu_seconds();

 private:
  void run(const std::function<Duration()>& turn);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

// Runs `work` on the thread of `worker`, then `then` on that of `home`. Both loops must outlive it.
std::function<void(std::function<void()> work, std::function<void()> then)> aside(Loop& worker,
                                                                                  Loop& home);

}  // namespace skiff::assembly
