// The threads that write for RemoteClient::submit(). What can wait (events) gives way to the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace skiff::client {

struct WorkersOptions {
  int threads = 8;
  std::size_t tasks_max = 1'000;  // that wait, of each sort
  // What can wait is done one at a time, when nothing else has been done for `quiet`. What has
  // waited for `patience` is done beside the rest, and so is all that follows until none waits.
  std::chrono::milliseconds quiet = std::chrono::milliseconds(100);
  std::chrono::milliseconds patience = std::chrono::seconds(5);
};

// Ends what is under way and drops what has not begun when it is destroyed.
class Workers {
 public:
  using Task = std::function<void()>;

  explicit Workers(WorkersOptions options);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // From any thread. False: too many wait already.
  bool add(Task task);
  bool add_patient(Task task);

 private:
  using Clock = std::chrono::steady_clock;
  struct Patient {
    Task task;
    Clock::time_point since;
  };

  void run();
  // When the first of those that can wait may begin; nothing where only a change can tell.
  std::optional<Clock::time_point> patient_due() const;
  void pass_on();
  void do_one(std::unique_lock<std::mutex>& lock);
  void do_patient(std::unique_lock<std::mutex>& lock);

  const WorkersOptions options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::deque<Patient> patient_;
  int under_way_ = 0;
  int watchers_ = 0;  // threads that wait for the time of what can wait
  bool patient_under_way_ = false;
  bool late_ = false;  // one has waited for too long, and none of those after it waits as long
  Clock::time_point last_done_ = {};
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace skiff::client
