#include "store/sqlite_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "env/posix/sqlite.h"
#include "store/checksum.h"
#include "store/journal.h"
#include "store/mark.h"
#include "store/sqlite_format.h"
#include "store/store.h"

namespace skiff::store {
namespace {

using env::posix::sqlite::Database;
using env::posix::sqlite::Problem;
using env::posix::sqlite::Statement;

std::int64_t checksum(std::string_view resource, std::string_view ns, std::string_view name,
                      std::int64_t revision, std::string_view bytes) {
  Checksum sum;
  sum.add(resource);
  sum.add(ns);
  sum.add(name);
  sum.mix(static_cast<std::uint64_t>(revision));
  sum.add(bytes);
  return sum.value();
}

std::int64_t checksum(Revision last) {
  Checksum sum;
  sum.mix(last);
  return sum.value();
}

// Changes when the machine restarts, and only then; a power cut is a restart.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// After a failed sync the system may count the pages it has lost as written, and the next sync
// succeeds without them. Only what can be read back after a new start can be trusted.
[[noreturn]] void abort_on_lost_sync(std::string_view message) {
  std::fprintf(stderr, "skiff: %.*s\n", static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

Result<void> sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && fsync(fd) == 0;
  const std::string why = std::strerror(errno);
  if (fd >= 0) close(fd);
  if (done) return {};
  return fail(Code::kServiceUnavailable, fmt::format("cannot sync the folder {}: {}", folder, why));
}

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(std::string path, SqliteOptions options, Database db)
      : path_(std::move(path)), options_(std::move(options)), db_(std::move(db)) {
    if (!options_.boot) options_.boot = boot_id();
    if (!options_.sync_lost) options_.sync_lost = abort_on_lost_sync;
    if (options_.vfs.empty()) mark_.emplace(path_, *options_.boot);
    if (!options_.sync_folder) options_.sync_folder = [this] { return sync_folder_of(path_); };
  }

  Result<void> prepare();
  Result<Loaded> load() override;
  Result<void> write(const std::vector<Row>& rows, Revision last, Sync sync) override;

 private:
  Result<void> load_rows(Loaded& loaded);
  Result<void> check_whole(Revision last);
  Result<void> settle();
  Result<void> set_sync(Sync sync);
  Result<void> checkpoint();
  Result<void> write_rows(const std::vector<Row>& rows, Revision last);
  std::unexpected<Error> write_failed(Error error);

  const std::string path_;
  SqliteOptions options_;
  Database db_;
  std::optional<Statement> begin_, commit_, put_, remove_, put_meta_;
  std::optional<Sync> sync_;
  // A restart of the machine skips revisions by what is on disk. Were the first write of a new or
  // a just skipped store lazy, a power cut could make us give its revision again.
  bool first_write_ = true;
  std::optional<Mark> mark_;
};

Result<void> SqliteJournal::prepare() {
  SKIFF_TRY(prepare_database(db_, path_, current_format()));
  SKIFF_TRY(check_tables(db_, path_));
  // SQLite does this when it makes the log; but whoever made it may have died before.
  SKIFF_TRY(options_.sync_folder());
  db_.manage_checkpoints();
  // After a checkpoint a log that one huge batch has blown up gives its room back.
  SKIFF_TRY(db_.execute("PRAGMA journal_size_limit=16777216"));
  const auto make = [&](std::optional<Statement>& statement, const char* sql) -> Result<void> {
    SKIFF_ASSIGN(statement, db_.prepare(sql));
    return {};
  };
  SKIFF_TRY(make(begin_, "BEGIN IMMEDIATE"));
  SKIFF_TRY(make(commit_, "COMMIT"));
  SKIFF_TRY(make(put_, "INSERT OR REPLACE INTO objects VALUES(?, ?, ?, ?, ?, ?)"));
  SKIFF_TRY(make(remove_, "DELETE FROM objects WHERE resource = ? AND ns = ? AND name = ?"));
  return make(put_meta_, "INSERT OR REPLACE INTO meta VALUES(?, ?)");
}

Result<Journal::Loaded> SqliteJournal::load() {
  Loaded loaded;
  const auto revision = db_.integer("SELECT value FROM meta WHERE key = 'revision'");
  if (!revision) return damaged(path_, revision.error().message);
  const auto boot = db_.text("SELECT value FROM meta WHERE key = 'boot'");
  if (!boot) return damaged(path_, boot.error().message);
  loaded.revision = static_cast<Revision>(*revision);
  SKIFF_TRY(load_rows(loaded));
  SKIFF_TRY(check_whole(loaded.revision));
  // Without a boot id, as in some sandboxes, a power cut cannot be told from a quiet restart.
  const bool rebooted = *boot != *options_.boot || options_.boot->empty();
  if (loaded.revision > 0 && rebooted) loaded.revision += kLostRevisions;
  db_.checkpoint_on_close(true);
  SKIFF_TRY(settle());
  return loaded;
}

Result<void> SqliteJournal::load_rows(Loaded& loaded) {
  auto rows = db_.prepare("SELECT resource, ns, name, rev, sum, bytes FROM objects");
  if (!rows) return damaged(path_, rows.error().message);
  while (true) {
    const auto more = rows->step();
    if (!more) return damaged(path_, more.error().message);
    if (!*more) return {};
    const auto resource = rows->text(0), ns = rows->text(1), name = rows->text(2);
    const std::int64_t revision = rows->integer(3);
    const std::string_view bytes = rows->text(5);
    if (rows->integer(4) != checksum(resource, ns, name, revision, bytes) ||
        static_cast<Revision>(revision) > loaded.revision) {
      return damaged(path_, fmt::format("{} {}/{} is not what was written", resource, ns, name));
    }
    loaded.entries.push_back(std::make_shared<const Entry>(
        Key{std::string(resource), std::string(ns), std::string(name)},
        static_cast<Revision>(revision), bytes));
  }
}

// Each row has been checked by itself; this is about rows and commits that are not there.
Result<void> SqliteJournal::check_whole(Revision last) {
  const auto sum = db_.integer("SELECT value FROM meta WHERE key = 'sum'");
  const auto strange = db_.integer(
      "SELECT count(*) FROM meta WHERE key NOT IN ('format', 'revision', 'boot', 'sum')");
  // Before there was a sum the last revision had none; a new file has none yet.
  const bool unknown = !sum && sum.error().code == Code::kNotFound;
  if ((!unknown && sum != checksum(last)) || strange != 0) {
    return damaged(path_, "the last revision is not what was written");
  }
  const auto verdict = db_.text("PRAGMA quick_check(1)");
  if (!verdict) return damaged(path_, verdict.error().message);
  if (*verdict != "ok") return damaged(path_, *verdict);
  if (!mark_ || last >= mark_->least()) return {};
  return fail(
      Code::kServiceUnavailable,
      fmt::format("{0} ends at revision {1}, but revision {2} was confirmed: its log {0}-wal is "
                  "damaged or missing. Nothing was changed. Restore both files from a backup; or, "
                  "to go on without what is missing, remove {0}-mark.",
                  path_, last, mark_->least()));
}

// Everybody is about to see what was loaded, but a killed process may have left it in the system's
// memory only. Folding the log into the file begins with syncing it, which needs no room: on a full
// disk the rest can wait.
Result<void> SqliteJournal::settle() {
  Result<void> done = checkpoint();
  if (done || db_.problem() == Problem::kFull) return {};
  return write_failed(std::move(done).error());
}

Result<void> SqliteJournal::set_sync(Sync sync) {
  if (sync_ == sync) return {};
  SKIFF_TRY(
      db_.execute(sync == Sync::kSynced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  sync_ = sync;
  return {};
}

Result<void> SqliteJournal::checkpoint() {
  SKIFF_TRY(set_sync(Sync::kSynced));
  return db_.execute("PRAGMA wal_checkpoint(RESTART)");
}

Result<void> SqliteJournal::write_rows(const std::vector<Row>& rows, Revision last) {
  for (const Row& row : rows) {
    const Key& key = row.key;
    Statement& statement = row.entry == nullptr ? *remove_ : *put_;
    Text text;  // the statement does not copy it
    statement.bind(1, key.resource);
    statement.bind(2, key.ns);
    statement.bind(3, key.name);
    if (row.entry != nullptr) {
      const auto revision = static_cast<std::int64_t>(row.revision);
      text = row.entry->text();
      statement.bind(4, revision);
      statement.bind(5, checksum(key.resource, key.ns, key.name, revision, text.view()));
      statement.bind_blob(6, text.view());
    }
    SKIFF_TRY(statement.run());
  }
  put_meta_->bind(1, "revision");
  put_meta_->bind(2, static_cast<std::int64_t>(last));
  SKIFF_TRY(put_meta_->run());
  put_meta_->bind(1, "sum");
  put_meta_->bind(2, checksum(last));
  SKIFF_TRY(put_meta_->run());
  put_meta_->bind(1, "boot");
  put_meta_->bind(2, *options_.boot);
  return put_meta_->run();
}

Result<void> SqliteJournal::write(const std::vector<Row>& rows, Revision last, Sync sync) {
  // Before the transaction, not after it: whoever waits for the batch before has been told by now.
  if (db_.wal_pages() >= options_.checkpoint_pages) {
    if (Result<void> done = checkpoint(); !done) return write_failed(std::move(done).error());
  }
  if (first_write_) sync = Sync::kSynced;
  Result<void> written = set_sync(sync);
  if (written) written = begin_->run();
  if (written) written = write_rows(rows, last);
  if (written) written = commit_->run();
  if (!written) return write_failed(std::move(written).error());
  first_write_ = false;
  if (mark_) mark_->set(last, sync);
  return {};
}

std::unexpected<Error> SqliteJournal::write_failed(Error error) {
  const Problem problem = db_.problem();
  if (problem == Problem::kSync) {
    error.message = fmt::format(
        "the disk could not keep what was written to {} ({}). Skiff ends here, because going on "
        "could lose what it has promised; nothing that was confirmed is lost. Look at the disk, "
        "then start Skiff again.",
        path_, error.message);
    options_.sync_lost(error.message);
  } else if (problem == Problem::kFull) {
    error.message = fmt::format("the disk that holds {} is full", path_);
  } else {
    error.message = fmt::format("writing {} failed: {}", path_, error.message);
  }
  if (db_.in_transaction()) (void)db_.execute("ROLLBACK");
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path) {
  return open_sqlite_journal(path, SqliteOptions{});
}

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteOptions options) {
  SKIFF_ASSIGN(Database db, Database::open(path, Database::Mode::kReadWriteCreate, options.vfs));
  auto journal = std::make_unique<SqliteJournal>(path, std::move(options), std::move(db));
  SKIFF_TRY(journal->prepare());
  return journal;
}

}  // namespace skiff::store
