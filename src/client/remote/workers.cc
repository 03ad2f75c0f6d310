#include "client/remote/workers.h"

#include <algorithm>

#include "env/posix/heap.h"

namespace skiff::client {

Workers::Workers(WorkersOptions options) : options_(options) {
  for (int i = 0; i < std::max(1, options_.threads); ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
    patient_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::add(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= options_.tasks_max) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool Workers::add_patient(Task task) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (patient_.size() >= options_.tasks_max) return false;
    first = patient_.empty();
    patient_.push_back({.task = std::move(task), .since = Clock::now()});
  }
  // Whoever does one looks for the next.
  if (first) changed_.notify_one();
  return true;
}

std::optional<Workers::Clock::time_point> Workers::patient_due() const {
  if (patient_.empty() || patient_under_way_) return {};
  const auto latest = late_ ? Clock::time_point() : patient_.front().since + options_.patience;
  const bool busy = under_way_ > 0 || !tasks_.empty();
  return busy ? latest : std::min(latest, last_done_ + options_.quiet);
}

// The thread that was woken goes to work: another one has to see to what is left, at its time.
void Workers::pass_on() {
  const bool unwatched = !patient_.empty() && watchers_ == 0;
  if (!tasks_.empty() || unwatched) changed_.notify_one();
}

void Workers::do_one(std::unique_lock<std::mutex>& lock) {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  ++under_way_;
  pass_on();
  lock.unlock();
  task();
  task = {};  // what it holds goes without the lock
  lock.lock();
  --under_way_;
  last_done_ = Clock::now();
}

void Workers::do_patient(std::unique_lock<std::mutex>& lock) {
  Task task = std::move(patient_.front().task);
  late_ = late_ || patient_.front().since + options_.patience <= Clock::now();
  patient_.pop_front();
  patient_under_way_ = true;
  pass_on();
  lock.unlock();
  task();
  task = {};
  lock.lock();
  patient_under_way_ = false;
  late_ = late_ && !patient_.empty();
}

void Workers::run() {
  env::keep_no_spare_memory();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto due = patient_due();
    if (due && *due <= Clock::now()) {
      do_patient(lock);
    } else if (!tasks_.empty()) {
      do_one(lock);
    } else if (due) {
      ++watchers_;
      changed_.wait_until(lock, *due);
      --watchers_;
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace skiff::client
