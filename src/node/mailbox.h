// Work handed to one thread: functions to run now or later, in order of their time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace skiff::node {

class Mailbox {
 public:
  using Work = std::function<void()>;
  using When = std::chrono::steady_clock::time_point;

  // From any thread. After close() work is dropped.
  void post(Work work);
  // Before everything that was only posted.
  void post_urgent(Work work);
  void post_at(When when, Work work);
  void close();

  // Runs work on the calling thread until close().
  void run();

 private:
  void put(std::deque<Work>& queue, Work work);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Work> urgent_ = {};
  std::deque<Work> now_ = {};
  std::multimap<When, Work> later_ = {};
  bool closed_ = false;
};

}  // namespace skiff::node
