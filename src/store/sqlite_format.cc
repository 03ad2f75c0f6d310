#include "store/sqlite_format.h"

#include <fmt/format.h>

#include "base/check.h"

namespace skiff::store {
namespace {

using env::posix::sqlite::Database;
using env::posix::sqlite::Problem;

// "Skif" as a number, at a place in the header that SQLite keeps for this. It tells our files
// from those of other programs before we touch a table.
constexpr std::int64_t kApplication = 0x536b6966;

// The text itself is part of the format: see check_tables(). `sum` guards what SQLite has no
// checksum for. `revision` and `boot` of meta: see the journal.
constexpr const char* kCreate = R"(
  CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
  CREATE TABLE objects(
    resource TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
    rev INTEGER NOT NULL, sum INTEGER NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY(resource, ns, name)) WITHOUT ROWID;
  INSERT INTO meta VALUES('revision', 0), ('boot', '');
)";

// Turns SQLite's error at opening into a sentence for the person who starts Skiff.
std::unexpected<Error> explain(const Database& db, const std::string& path, const Error& error) {
  switch (db.problem()) {
    case Problem::kDamaged:
      return damaged(path, error.message);
    case Problem::kBusy:
      return fail(Code::kServiceUnavailable,
                  fmt::format("{} is in use by another process, probably another Skiff on the "
                              "same data directory. Stop that one first.",
                              path));
    default:
      return fail(Code::kServiceUnavailable, fmt::format("cannot use {}: {}", path, error.message));
  }
}

Result<void> in_transaction(Database& db, auto&& work) {
  SKIFF_TRY(db.execute("BEGIN IMMEDIATE"));
  Result<void> done = work();
  if (done) done = db.execute("COMMIT");
  // The rollback of a transaction that SQLite has already rolled back itself has nothing to do.
  if (!done && db.in_transaction()) (void)db.execute("ROLLBACK");
  return done;
}

Result<void> set_version(Database& db, int version) {
  return db.execute(
      fmt::format("INSERT OR REPLACE INTO meta VALUES('format', {})", version).c_str());
}

Result<void> create(Database& db, int version) {
  return in_transaction(db, [&]() -> Result<void> {
    SKIFF_TRY(db.execute(fmt::format("PRAGMA application_id={}", kApplication).c_str()));
    SKIFF_TRY(db.execute(kCreate));
    return set_version(db, version);
  });
}

Result<void> migrate(Database& db, int version, const Format& format) {
  return in_transaction(db, [&]() -> Result<void> {
    for (int at = version; at < format.version; ++at) {
      const Migration* step = nullptr;
      for (const Migration& migration : format.migrations) {
        if (migration.from == at) step = &migration;
      }
      SKIFF_CHECK(step != nullptr, fmt::format("there is a migration from format {}", at));
      SKIFF_TRY(step->apply(db));
    }
    return set_version(db, format.version);
  });
}

// What can be learned without changing anything.
struct Found {
  bool fresh = false;  // empty, or given up while it was made
  bool ours = false;
  std::int64_t version = 0;  // 0 where the file does not say
};

Result<Found> inspect(Database& db) {
  // Nobody else may write, or memory and disk would differ; so the index of the log can live in
  // our memory instead of a shared file.
  SKIFF_TRY(db.execute("PRAGMA locking_mode=EXCLUSIVE"));
  Found found;
  SKIFF_ASSIGN(const std::int64_t tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  SKIFF_ASSIGN(const std::int64_t application, db.integer("PRAGMA application_id"));
  found.fresh = tables == 0 && application == 0;
  found.ours = application == kApplication;
  if (!found.ours) return found;
  const auto version = db.integer("SELECT value FROM meta WHERE key = 'format'");
  if (version) found.version = *version;
  if (!version && db.problem() == Problem::kDamaged) return std::unexpected(version.error());
  return found;
}

Result<void> refuse_unusable(const Found& found, const std::string& path, int known) {
  if (!found.ours) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{} is the database of another program. Nothing was changed. Give "
                            "Skiff another data directory with --data.",
                            path));
  }
  if (found.version > known) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{} was written by a newer Skiff (format {}; this one knows formats up "
                            "to {}). Nothing was changed. Start the newer Skiff again, or give "
                            "this one another data directory with --data.",
                            path, found.version, known));
  }
  if (found.version < 1) return damaged(path, "it does not say its format");
  return {};
}

Result<void> bring_up_to_date(Database& db, const Found& found, const Format& format) {
  SKIFF_TRY(db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"));
  if (found.fresh) return create(db, format.version);
  if (found.version == format.version) return {};
  return migrate(db, static_cast<int>(found.version), format);
}

}  // namespace

Format current_format() { return {}; }

std::unexpected<Error> damaged(const std::string& path, std::string_view detail) {
  return fail(Code::kServiceUnavailable,
              fmt::format("{0} is damaged ({1}). Nothing was changed. Restore it together with "
                          "{0}-wal from a backup; or move both away to start empty, and try "
                          "`sqlite3 {0} .recover` to see what can be saved.",
                          path, detail));
}

Result<void> check_tables(Database& db, const std::string& path) {
  SKIFF_ASSIGN(Database fresh, Database::open(":memory:", Database::Mode::kReadWriteCreate));
  SKIFF_TRY(fresh.execute(kCreate));
  constexpr std::string_view kTables =
      "SELECT group_concat(type || ' ' || name || ': ' || coalesce(sql, ''), '; ')"
      " FROM (SELECT * FROM sqlite_schema ORDER BY name)";
  SKIFF_ASSIGN(const std::string expected, fresh.text(kTables));
  const auto found = db.text(kTables);
  if (!found) return damaged(path, found.error().message);
  if (*found != expected) return damaged(path, "its tables are not as they were made");
  return {};
}

Result<void> prepare_database(Database& db, const std::string& path, const Format& format) {
  // Until all checks have passed the file and its log stay as they are.
  db.checkpoint_on_close(false);
  const Result<Found> found = inspect(db);
  if (!found) return explain(db, path, found.error());
  if (!found->fresh) SKIFF_TRY(refuse_unusable(*found, path, format.version));
  const Result<void> ready = bring_up_to_date(db, *found, format);
  if (!ready) return explain(db, path, ready.error());
  return {};
}

}  // namespace skiff::store
