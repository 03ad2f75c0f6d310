#include "assembly/loop.h"

#include <pthread.h>
#include <time.h>

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

double Loop::cpu_seconds() {
  clockid_t clock = {};
  timespec taken = {};
  if (pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return 0;
  clock_gettime(clock, &taken);
  return static_cast<double>(taken.tv_sec) + static_cast<double>(taken.tv_nsec) / 1e9;
}

void Loop::run(const std::function<Duration()>& turn) {
  Duration wait{0};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::min(wait, kLongest),
                      [this] { return stopping_ || woken_ || !posted_.empty(); });
    woken_ = false;
    std::deque<std::function<void()>> work = std::exchange(posted_, {});
    // A submit may take seconds; whoever stops the loop does not wait for all that are queued.
    while (!stopping_ && !work.empty()) {
      lock.unlock();
      work.front()();
      work.pop_front();
      lock.lock();
    }
    const bool go_on = !stopping_;
    lock.unlock();
    work.clear();  // not under the lock: what a function holds may post when it goes
    if (go_on) wait = turn();
    lock.lock();
  }
}

std::function<void(std::function<void()>, std::function<void()>)> aside(Loop& worker, Loop& home) {
  return [&worker, &home](std::function<void()> work, std::function<void()> then) {
    worker.post([&home, work = std::move(work), then = std::move(then)]() mutable {
      work();
      work = {};  // what it holds is freed here
      home.post(std::move(then));
    });
  };
}

}  // namespace skiff::assembly
