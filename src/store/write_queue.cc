#include "store/write_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <unordered_set>

namespace skiff::store {
namespace {

using namespace std::chrono_literals;

constexpr auto kRetry = 200ms;
// Lazy writes have nobody in a hurry behind them; waiting makes one transaction of many.
constexpr auto kGather = 4ms;
// Mutations that may wait for the disk: some seconds of the fastest writer. Past that memory would
// only fill while every answer waits.
constexpr std::size_t kWaiting = 100'000;
// A power cut loses lazy writes since the last sync. This bounds how many revisions those are; the
// journals skip more than that when they open after one (kLostRevisions in store/journal.h).
constexpr Revision kUnsynced = 10'000;

struct KeyHash {
  std::size_t operator()(const Key* key) const {
    const std::hash<std::string> hash;
    return (hash(key->resource) * 31 + hash(key->ns)) * 31 + hash(key->name);
  }
};
struct KeyEqual {
  bool operator()(const Key* a, const Key* b) const { return *a == *b; }
};

// The outcome is open, as after a timeout: whoever asked must look again.
Error not_safe_yet(const std::string& why) {
  return {.code = Code::kTimeout,
          .message = fmt::format("This cannot be confirmed: {}. What was changed waits in memory "
                                 "and is written as soon as the disk takes it.",
                                 why)};
}

// Of several writes to one object only the last matters to the disk.
std::vector<Journal::Row> newest_rows(const std::deque<Pending>& batch) {
  std::unordered_set<const Key*, KeyHash, KeyEqual> seen;
  std::vector<Journal::Row> rows;
  for (auto pending = batch.rbegin(); pending != batch.rend(); ++pending) {
    for (auto row = pending->rows.rbegin(); row != pending->rows.rend(); ++row) {
      if (seen.insert(&row->key).second) rows.push_back(*row);
    }
  }
  std::ranges::reverse(rows);
  return rows;
}

}  // namespace

WriteQueue::WriteQueue(std::unique_ptr<Journal> journal, Revision start,
                       std::function<void(const Resources&)> arrived)
    : journal_(std::move(journal)),
      arrived_(std::move(arrived)),
      visible_(start),
      synced_up_to_(start) {}

WriteQueue::~WriteQueue() { stop(); }

void WriteQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    // Nobody is left to tell: what cannot be written was never acknowledged.
    (void)write();
  }
}

void WriteQueue::start_thread() {
  thread_ = std::thread([this] { run(); });
}

Result<void> WriteQueue::accepting() const {
  if (refuses_.load()) {
    const std::lock_guard lock(mutex_);
    if (!refusing_.empty()) {
      return fail(Code::kServiceUnavailable,
                  fmt::format("Nothing was changed: {}. Reading still works, and writing resumes "
                              "by itself once the cause is gone.",
                              refusing_));
    }
  }
  if (waiting_.load() >= kWaiting) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{} changes already wait for the disk; try again in a moment.",
                            waiting_.load()));
  }
  return {};
}

void WriteQueue::push(Pending pending) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ += pending.rows.size();
    synced_waiting_ |= pending.sync == Sync::kSynced;
    queue_.push_back(std::move(pending));
  }
  work_.notify_one();
}

WriteQueue::Batch WriteQueue::take(Sync& sync) {
  const std::lock_guard lock(mutex_);
  Batch batch;
  batch.swap(queue_);
  const bool overdue = !batch.empty() && batch.back().last - synced_up_to_ > kUnsynced;
  sync = synced_waiting_ || overdue ? Sync::kSynced : Sync::kLazy;
  synced_waiting_ = false;
  return batch;
}

Result<void> WriteQueue::write() {
  Sync sync = Sync::kLazy;
  Batch batch = take(sync);
  if (batch.empty()) return {};
  Result<void> written = journal_->write(newest_rows(batch), batch.back().last, sync);
  if (written) {
    arrive(batch, sync);
  } else {
    put_back(std::move(batch), written.error());
  }
  return written;
}

void WriteQueue::put_back(Batch batch, const Error& error) {
  std::vector<Store::Refused> refused;
  {
    const std::lock_guard lock(mutex_);
    for (const Pending& pending : batch) synced_waiting_ |= pending.sync == Sync::kSynced;
    queue_.insert(queue_.begin(), std::make_move_iterator(batch.begin()),
                  std::make_move_iterator(batch.end()));
    refusing_ = error.message;
    refuses_ = true;
    std::erase_if(waiters_, [&](auto& waiter) {
      if (!waiter.second.refused) return false;
      refused.push_back(std::move(waiter.second.refused));
      return true;
    });
  }
  for (const Store::Refused& fn : refused) fn(not_safe_yet(error.message));
}

void WriteQueue::arrive(const Batch& batch, Sync sync) {
  std::vector<std::function<void()>> ready;
  Resources resources;
  std::size_t mutations = 0;
  for (const Pending& pending : batch) {
    mutations += pending.rows.size();
    for (const Journal::Row& row : pending.rows) resources.insert(row.key.resource);
  }
  {
    const std::lock_guard lock(mutex_);
    const Revision last = batch.back().last;
    visible_ = last;
    waiting_ -= mutations;
    refusing_.clear();
    refuses_ = false;
    if (sync == Sync::kSynced) {
      ++syncs_;
      synced_up_to_ = last;
    }
    const auto end = waiters_.upper_bound(last);
    for (auto it = waiters_.begin(); it != end; ++it)
      ready.push_back(std::move(it->second.visible));
    waiters_.erase(waiters_.begin(), end);
  }
  for (const auto& fn : ready) fn();
  arrived_(resources);
}

void WriteQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    if (!refusing_.empty()) {
      work_.wait_for(lock, kRetry, [&] { return stopping_; });
    } else if (!synced_waiting_) {
      work_.wait_for(lock, kGather, [&] { return stopping_ || synced_waiting_; });
    }
    const bool last_try = stopping_;
    lock.unlock();
    const bool written = write().has_value();
    lock.lock();
    if (!written && last_try) return;
  }
}

void WriteQueue::when_visible(Revision revision, std::function<void()> fn, Store::Refused refused) {
  if (revision > visible_.load()) {
    std::unique_lock lock(mutex_);
    // It may have arrived since we looked; visible_ changes under the lock only.
    if (revision > visible_.load()) {
      if (refused && !refusing_.empty()) {
        const Error error = not_safe_yet(refusing_);
        lock.unlock();
        return refused(error);
      }
      waiters_.emplace(revision, Waiter{.visible = std::move(fn), .refused = std::move(refused)});
      return;
    }
  }
  fn();
}

WriteQueue::Stats WriteQueue::stats() const {
  const std::lock_guard lock(mutex_);
  return {.syncs = syncs_, .waiting = waiting_.load(), .refusing = refusing_};
}

}  // namespace skiff::store
