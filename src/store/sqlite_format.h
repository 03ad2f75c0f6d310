// The format of objects.db: what is in it, its version, and the way from older versions to ours.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "env/posix/sqlite.h"

namespace skiff::store {

// One step: brings a database of format `from` to from + 1. Runs inside the transaction of the
// whole migration, which either ends at the newest format or leaves the file as it was.
struct Migration {
  int from = 0;
  Result<void> (*apply)(env::posix::sqlite::Database& db) = nullptr;
};

struct Format {
  int version = 1;
  std::span<const Migration> migrations = {};
};

// What this version of Skiff writes. A change of the tables adds one to `version` and a migration.
Format current_format();

// Makes a new database ready, migrates an older one, refuses a newer one, a damaged one and a file
// that is not ours. A refused file is left as it was found.
Result<void> prepare_database(env::posix::sqlite::Database& db, const std::string& path,
                              const Format& format);

// Refuses a database of the current format whose tables are not as we make them: a damaged word in
// their definition may leave them readable and change what is written next.
Result<void> check_tables(env::posix::sqlite::Database& db, const std::string& path);

// The sentence for a file that cannot be trusted, and what to do about it.
std::unexpected<Error> damaged(const std::string& path, std::string_view detail);

}  // namespace skiff::store
