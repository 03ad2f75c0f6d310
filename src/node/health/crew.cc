#include "node/health/crew.h"

namespace skiff::node {

void Crew::run(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_.stop_requested()) return;
    waiting_.push_back(std::move(work));
    if (idle_ < waiting_.size() && threads_.size() < most_) {
      threads_.emplace_back([this] { serve(); });
    }
  }
  arrived_.notify_one();
}

void Crew::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stop_.request_stop();
    waiting_.clear();
    threads.swap(threads_);
  }
  arrived_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Crew::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    arrived_.wait(lock, [this] { return stop_.stop_requested() || !waiting_.empty(); });
    --idle_;
    if (stop_.stop_requested()) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work(stop_.get_token());
    work = nullptr;
    lock.lock();
  }
}

}  // namespace skiff::node
