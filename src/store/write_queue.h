// Commits on their way to the journal, and who waits for them to arrive. Thread-safe.
//
// The order of push() is the order on disk. A batch that the journal refuses stays at the head of
// the queue and is tried again; until that succeeds nothing behind it becomes visible.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/listeners.h"
#include "store/store.h"

namespace skiff::store {

struct Pending {
  std::vector<Journal::Row> rows = {};
  // Kept until the commit is visible: whoever is called about it then finds the entries parsed.
  std::vector<Object> values = {};
  Revision last = 0;
  Sync sync = Sync::kSynced;
};

class WriteQueue {
 public:
  // `arrived` is called after each batch, without a lock held, with what changed in it.
  WriteQueue(std::unique_ptr<Journal> journal, Revision start,
             std::function<void(const Resources&)> arrived);
  ~WriteQueue();  // Calls stop().
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  void start_thread();
  bool has_thread() const { return thread_.joinable(); }

  // Writes what waits, but tries only once: a full disk must not stop an exit. Ends the thread.
  void stop();

  // kServiceUnavailable while the journal refuses writes or is too far behind.
  Result<void> accepting() const;
  void push(Pending pending);
  // Writes all that waits as one transaction. Called by one thread at a time.
  Result<void> write();

  Revision visible() const { return visible_.load(); }
  void when_visible(Revision revision, std::function<void()> fn, Store::Refused refused);

  struct Stats {
    std::uint64_t syncs = 0;
    std::size_t waiting = 0;
    std::string refusing = {};
  };
  Stats stats() const;

 private:
  using Batch = std::deque<Pending>;
  struct Waiter {
    std::function<void()> visible = {};
    Store::Refused refused = {};  // null: waits for as long as it takes
  };

  void run();
  Batch take(Sync& sync);
  void put_back(Batch batch, const Error& error);
  void arrive(const Batch& batch, Sync sync);

  const std::unique_ptr<Journal> journal_;
  const std::function<void(const Resources&)> arrived_;
  std::atomic<Revision> visible_;
  std::atomic<bool> refuses_ = false;
  std::atomic<std::size_t> waiting_ = 0;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable work_;
  Batch queue_;
  bool synced_waiting_ = false;
  bool stopping_ = false;
  std::string refusing_;
  std::uint64_t syncs_ = 0;
  Revision synced_up_to_;
  std::multimap<Revision, Waiter> waiters_;

  std::thread thread_;
};

}  // namespace skiff::store
