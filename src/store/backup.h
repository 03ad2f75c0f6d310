// A copy of a running store in one file, and the way back. A backup is an SQLite database in the
// format of objects.db with two more tables: what the copy is, and files that belong to it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace skiff::store {

// Every object as it was at one revision.
struct Snapshot {
  Revision revision = 0;
  std::vector<EntryPtr> entries = {};
};
// Consistent across resources, without stopping anybody.
Result<Snapshot> take_snapshot(const Store& store);

struct BackupFile {
  std::string name = {};  // a path below the data folder: pki/ca.crt
  std::string bytes = {};
};

struct Backup {
  Revision revision = 0;
  std::size_t objects = 0;
  std::string taken_at = {};  // RFC 3339
  std::string taken_by = {};  // the version of Skiff
  std::vector<BackupFile> files = {};
};

// Writes a new file at `path`, synced. `about` gives everything but revision and objects.
Result<void> write_backup(const std::string& path, const Snapshot& snapshot, const Backup& about);

// Turns a copy of a backup into an objects.db, in place, after checking every object and file in
// it. Its revision becomes one that no client of a store at `seen` has heard of, so that their
// watches list again. What is wrong with the file is said; it is of no use then.
Result<Backup> open_backup(const std::string& copy, Revision seen);

// The newest revision in an objects.db that nobody has open; 0 where there is none or it cannot be
// read.
Revision last_revision(const std::string& objects_db);

}  // namespace skiff::store
