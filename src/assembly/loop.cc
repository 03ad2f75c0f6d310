#include "assembly/loop.h"

#include <algorithm>
#include <utility>

namespace skiff::assembly {
namespace {

// Even an idle loop looks around this often: a lost wake-up must not stop the platform.
constexpr Duration kLongest = std::chrono::seconds(1);

}  // namespace

void Loop::start(std::function<Duration()> turn) {
  thread_ = std::thread([this, turn = std::move(turn)] { run(turn); });
}

void Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Loop::post(std::function<void()> fn) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(fn));
  }
  changed_.notify_one();
}

void Loop::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(woken_, true)) return;
  }
  changed_.notify_one();
}

void Loop::run(const std::function<Duration()>& turn) {
  Duration wait{0};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::min(wait, kLongest),
                      [this] { return stopping_ || woken_ || !posted_.empty(); });
    woken_ = false;
    std::deque<std::function<void()>> work = std::exchange(posted_, {});
    lock.unlock();
    for (auto& fn : work) fn();
    wait = turn();
    lock.lock();
  }
}

}  // namespace skiff::assembly
