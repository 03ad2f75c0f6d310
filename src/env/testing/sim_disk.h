// A disk for tests of what SQLite keeps on it: a file system in memory that knows what a power cut
// would leave of it, and that fails when told to. Real SQLite works on it, by the name vfs().
//
// What is written is in the system's memory at once and on the disk after a sync. A power cut keeps
// of the unsynced writes what chance will: whole sectors, beginnings of sectors, in any order; new
// room may hold noise. Files that were made or removed are so for good once their folder is synced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/random.h"

namespace skiff::env::testing {

// Thread-safe. Must outlive what is open on it.
class SimDisk {
 public:
  explicit SimDisk(std::uint64_t seed);
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  const std::string& vfs() const;

  // Writes, truncations, syncs and removals so far; a fault is planned for one of them.
  std::uint64_t operations() const;

  enum class Fault {
    kFull,   // no room: a write fails, perhaps after a part of it
    kIo,     // a write or truncation fails
    kSync,   // a sync fails, and the system forgets that the data were not yet on disk
    kDeath,  // the process dies before this operation; see dead()
  };
  // The operation with this number and those after it fail, until heal(). A fault strikes only what
  // it is about: kFull and kIo leave syncs alone, kSync leaves writes alone.
  void fail_from(std::uint64_t operation, Fault fault);
  void heal();
  bool struck() const;  // the fault has hit something
  bool dead() const;    // kDeath has; nothing that is open can change anything any more

  // The machine stays up: what was written is there. Whatever is open writes no more.
  void crash();
  void power_cut();

  void sync_folder();  // as fsync(2) of the folder

  // A drive that lies: syncs succeed and do nothing.
  void ignore_syncs(bool on);

  std::string contents(const std::string& path) const;  // as a program reads it
  void set_contents(const std::string& path, std::string bytes);
  bool exists(const std::string& path) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
  friend struct SimVfs;
};

}  // namespace skiff::env::testing
