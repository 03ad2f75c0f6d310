// A simulated disk for the simulator and for tests: it outlives the store that writes to it, can
// fail, and knows what a power cut would leave of it.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace skiff::store {

// Thread-safe.
class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  // From now on every write fails with this reason and leaves no trace, until heal().
  void fail(std::string reason);
  void heal();

  // The process that has the disk open dies (kill -9): what it wrote stays, but the journal it
  // holds writes no more. So `crash(); store.reset();` loses what was not yet written.
  void crash();
  // As crash(), and writes after the last synced one are gone.
  void power_cut();

  struct Stats {
    std::size_t objects = 0;
    std::uint64_t writes = 0;  // transactions that succeeded
    std::uint64_t syncs = 0;   // of these, synced ones
    Revision last = 0;
    Revision synced = 0;  // what a power cut would leave
  };
  Stats stats() const;

 private:
  friend class MemoryJournal;
  struct State;
  const std::unique_ptr<State> state_;
};

// A journal on `disk`. One that was opened before writes no more, as after crash().
std::unique_ptr<Journal> open_memory_journal(std::shared_ptr<MemoryDisk> disk);

}  // namespace skiff::store
