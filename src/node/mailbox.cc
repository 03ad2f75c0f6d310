#include "node/mailbox.h"

#include <utility>

namespace skiff::node {

void Mailbox::put(std::deque<Work>& queue, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    queue.push_back(std::move(work));
  }
  arrived_.notify_one();
}

void Mailbox::post(Work work) { put(now_, std::move(work)); }
void Mailbox::post_urgent(Work work) { put(urgent_, std::move(work)); }

void Mailbox::post_at(When when, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    later_.emplace(when, std::move(work));
  }
  arrived_.notify_one();
}

void Mailbox::close() {
  std::deque<Work> dropped, dropped_urgent;
  std::multimap<When, Work> dropped_later;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // Destroyed outside the lock: what the work holds may itself call back here.
    dropped.swap(now_);
    dropped_urgent.swap(urgent_);
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
    if (now_.empty() && urgent_.empty()) {
      if (later_.empty()) {
        arrived_.wait(lock);
      } else {
        arrived_.wait_until(lock, later_.begin()->first);
      }
      continue;
    }
    std::deque<Work>& queue = urgent_.empty() ? now_ : urgent_;
    Work work = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace skiff::node
