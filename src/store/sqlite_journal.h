// The journal in SQLite: one row an object, and the last revision in the same transaction. Others
// open it by store.h; what can be set here is for tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace skiff::store {

struct SqliteOptions {
  std::string vfs = {};  // as SQLite knows it; empty: the machine's files
  // Changes when the machine restarts, and only then. Absent: the machine's own.
  std::optional<std::string> boot = {};
  // The write-ahead log is folded into the file when it has this many pages (8 MiB): rarely enough
  // that a page changed often is copied once, and soon enough that opening after a crash is quick.
  int checkpoint_pages = 2'048;
  // Makes the names in the folder of the file as safe as the file. Absent: asks the system to.
  std::function<Result<void>()> sync_folder = {};
  // Called when a sync has failed. Absent: says why and aborts.
  std::function<void(std::string_view)> sync_lost = {};
};

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteOptions options);

}  // namespace skiff::store
