#include "node/mailbox.h"

#include <utility>

namespace skiff::node {

void Mailbox::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    now_.push_back(std::move(work));
  }
  arrived_.notify_one();
}

void Mailbox::post_at(When when, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    later_.emplace(when, std::move(work));
  }
  arrived_.notify_one();
}

void Mailbox::close() {
  std::deque<Work> dropped;
  std::multimap<When, Work> dropped_later;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // Destroyed outside the lock: what the work holds may itself call back here.
    dropped.swap(now_);
    dropped_later.swap(later_);
  }
  arrived_.notify_all();
}

void Mailbox::run() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    const When time = std::chrono::steady_clock::now();
    while (!later_.empty() && later_.begin()->first <= time) {
      now_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (now_.empty()) {
      if (later_.empty()) {
        arrived_.wait(lock);
      } else {
        arrived_.wait_until(lock, later_.begin()->first);
      }
      continue;
    }
    Work work = std::move(now_.front());
    now_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace skiff::node
