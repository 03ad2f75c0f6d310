// The journal in SQLite: one row an object, and the last revision in the same transaction.
#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "env/posix/sqlite.h"
#include "store/journal.h"
#include "store/sqlite_format.h"
#include "store/store.h"

namespace skiff::store {
namespace {

using env::posix::sqlite::Database;
using env::posix::sqlite::Problem;
using env::posix::sqlite::Statement;

// The write-ahead log is folded into the file when it has this many pages (8 MiB): rarely enough
// that a page changed often is copied once, and soon enough that opening after a crash is quick.
constexpr int kCheckpointPages = 2'048;

// Detects damage, not malice: every bit of the input moves half of the bits of the sum.
class Checksum {
 public:
  void add(std::string_view bytes) {
    mix(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    std::uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
    mix(rest);
  }
  void mix(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 29;
  }
  std::int64_t value() const { return static_cast<std::int64_t>(state_); }

 private:
  std::uint64_t state_ = 0x5bd1e995;
};

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

// Changes when the machine restarts, and only then; a power cut is a restart.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(std::string path, Database db)
      : path_(std::move(path)), boot_(boot_id()), db_(std::move(db)) {}

  Result<void> prepare();
  Result<Loaded> load() override;
  Result<void> write(const std::vector<Row>& rows, Revision last, Sync sync) override;

 private:
  Result<void> load_rows(Loaded& loaded);
  Result<void> set_sync(Sync sync);
  Result<void> checkpoint();
  Result<void> write_rows(const std::vector<Row>& rows, Revision last);
  std::unexpected<Error> write_failed(Error error);

  const std::string path_;
  const std::string boot_;
  Database db_;
  std::optional<Statement> begin_, commit_, put_, remove_, put_meta_;
  std::optional<Sync> sync_;
  // The system may have dropped pages that it failed to sync; what is in the log cannot be
  // trusted to reach the disk until it has been folded into the file.
  bool log_suspect_ = false;
};

Result<void> SqliteJournal::prepare() {
  SKIFF_TRY(prepare_database(db_, path_, current_format()));
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
  // Without a boot id, as in some sandboxes, a power cut cannot be told from a quiet restart.
  const bool rebooted = *boot != boot_ || boot_.empty();
  if (loaded.revision > 0 && rebooted) loaded.revision += kLostRevisions;
  db_.checkpoint_on_close(true);
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
        static_cast<Revision>(revision), std::string(bytes)));
  }
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
  SKIFF_TRY(db_.execute("PRAGMA wal_checkpoint(RESTART)"));
  log_suspect_ = false;
  return {};
}

Result<void> SqliteJournal::write_rows(const std::vector<Row>& rows, Revision last) {
  for (const Row& row : rows) {
    const Key& key = row.key;
    Statement& statement = row.entry == nullptr ? *remove_ : *put_;
    statement.bind(1, key.resource);
    statement.bind(2, key.ns);
    statement.bind(3, key.name);
    if (row.entry != nullptr) {
      const auto revision = static_cast<std::int64_t>(row.revision);
      const std::string& bytes = row.entry->bytes();
      statement.bind(4, revision);
      statement.bind(5, checksum(key.resource, key.ns, key.name, revision, bytes));
      statement.bind_blob(6, bytes);
    }
    SKIFF_TRY(statement.run());
  }
  put_meta_->bind(1, "revision");
  put_meta_->bind(2, static_cast<std::int64_t>(last));
  SKIFF_TRY(put_meta_->run());
  put_meta_->bind(1, "boot");
  put_meta_->bind(2, boot_);
  return put_meta_->run();
}

Result<void> SqliteJournal::write(const std::vector<Row>& rows, Revision last, Sync sync) {
  // Before the transaction, not after it: whoever waits for the batch before has been told by now.
  if (log_suspect_ || db_.wal_pages() >= kCheckpointPages) {
    if (Result<void> done = checkpoint(); !done) return write_failed(std::move(done).error());
  }
  Result<void> written = set_sync(sync);
  if (written) written = begin_->run();
  if (written) written = write_rows(rows, last);
  if (written) written = commit_->run();
  if (!written) return write_failed(std::move(written).error());
  return {};
}

std::unexpected<Error> SqliteJournal::write_failed(Error error) {
  const Problem problem = db_.problem();
  if (db_.in_transaction()) (void)db_.execute("ROLLBACK");
  if (problem == Problem::kIo) log_suspect_ = true;
  if (problem == Problem::kFull) {
    error.message = fmt::format("the disk that holds {} is full", path_);
  } else {
    error.message = fmt::format("writing {} failed: {}", path_, error.message);
  }
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path) {
  SKIFF_ASSIGN(Database db, Database::open(path, Database::Mode::kReadWriteCreate));
  auto journal = std::make_unique<SqliteJournal>(path, std::move(db));
  SKIFF_TRY(journal->prepare());
  return journal;
}

}  // namespace skiff::store
