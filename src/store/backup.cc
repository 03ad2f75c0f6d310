#include "store/backup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <tuple>

#include "env/posix/sqlite.h"
#include "store/journal.h"

namespace skiff::store {
namespace {

using env::posix::sqlite::Database;
using env::posix::sqlite::Statement;

constexpr std::size_t kEventsAtOnce = 1024;
// More would be a table of something else.
constexpr std::size_t kFilesMost = 1'000;

using Objects = std::map<std::pair<std::string, std::string>, EntryPtr>;

// Brings a resource from where it was listed to the snapshot's revision.
Result<void> catch_up(const Store& store, const std::string& resource, Revision at, Revision until,
                      Objects& objects) {
  while (true) {
    SKIFF_ASSIGN(const auto events, store.events(resource, at, Horizon::kCommitted, kEventsAtOnce));
    for (const Event& event : events) {
      at = event.entry->revision();
      if (at > until) return {};
      const Key& key = event.entry->key();
      if (event.type == EventType::kDeleted) {
        objects.erase({key.ns, key.name});
      } else {
        objects[{key.ns, key.name}] = event.entry;
      }
    }
    if (events.size() < kEventsAtOnce) return {};
  }
}

// As the journal's sums: damage is noticed, malice is not.
std::int64_t sum_of(const BackupFile& file) {
  std::uint64_t state = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    state = (state ^ 0x100) * 0x100000001b3;
  };
  add(file.name);
  add(file.bytes);
  return static_cast<std::int64_t>(state);
}

Result<void> put_about(Database& db, std::string_view key, std::string_view value) {
  SKIFF_ASSIGN(Statement put, db.prepare("INSERT INTO backup VALUES(?, ?)"));
  put.bind(1, key);
  put.bind(2, value);
  return put.run();
}

Result<void> put_files(Database& db, const std::vector<BackupFile>& files) {
  SKIFF_ASSIGN(Statement put, db.prepare("INSERT INTO backup_files VALUES(?, ?, ?)"));
  for (const BackupFile& file : files) {
    put.bind(1, file.name);
    put.bind(2, sum_of(file));
    put.bind_blob(3, file.bytes);
    SKIFF_TRY(put.run());
  }
  return {};
}

std::unexpected<Error> no_backup(std::string_view why) {
  return fail(Code::kInvalid, fmt::format("this is no backup that can be used: {}", why));
}

// Below the data folder and nowhere else.
bool safe_name(std::string_view name) {
  return !name.empty() && !name.starts_with('/') && !name.contains("..") && !name.contains('\0');
}

Result<Backup> read_about(Database& db) {
  Backup out;
  SKIFF_ASSIGN(out.taken_at, db.text("SELECT value FROM backup WHERE key = 'taken_at'"));
  SKIFF_ASSIGN(out.taken_by, db.text("SELECT value FROM backup WHERE key = 'taken_by'"));
  SKIFF_ASSIGN(const std::int64_t revision,
               db.integer("SELECT value FROM meta WHERE key = 'revision'"));
  SKIFF_ASSIGN(const std::int64_t objects, db.integer("SELECT count(*) FROM objects"));
  SKIFF_ASSIGN(const std::int64_t promised,
               db.integer("SELECT value FROM backup WHERE key = 'objects'"));
  if (objects != promised) return no_backup("objects are missing");
  out.revision = static_cast<Revision>(revision);
  out.objects = static_cast<std::size_t>(objects);
  SKIFF_ASSIGN(Statement rows, db.prepare("SELECT name, sum, bytes FROM backup_files"));
  while (true) {
    SKIFF_ASSIGN(const bool more, rows.step());
    if (!more) return out;
    BackupFile file{.name = std::string(rows.text(0)), .bytes = std::string(rows.text(2))};
    if (!safe_name(file.name) || rows.integer(1) != sum_of(file) ||
        out.files.size() >= kFilesMost) {
      return no_backup(fmt::format("{} is not what was written", file.name));
    }
    out.files.push_back(std::move(file));
  }
}

// Files that SQLite and the journal keep beside a database.
constexpr const char* kBeside[] = {"-wal", "-shm", "-journal", "-mark"};

void remove_beside(const std::string& path) {
  for (const char* tail : kBeside) unlink((path + tail).c_str());
}

}  // namespace

Result<Snapshot> take_snapshot(const Store& store) {
  const Revision before = store.revision();
  std::map<std::string, std::pair<Revision, Objects>> listed;
  for (const std::string& resource : store.resources()) {
    Listing listing = store.list(resource);
    auto& [revision, objects] = listed[resource];
    revision = listing.revision;
    for (EntryPtr& entry : listing.entries) {
      objects[{entry->key().ns, entry->key().name}] = std::move(entry);
    }
  }
  Snapshot out{.revision = store.revision()};
  // A resource that had no object yet when we began is known by its events since then.
  for (const std::string& resource : store.resources()) {
    listed.try_emplace(resource, before, Objects());
  }
  for (auto& [resource, state] : listed) {
    auto& [revision, objects] = state;
    SKIFF_TRY(catch_up(store, resource, revision, out.revision, objects));
    for (auto& [key, entry] : objects) out.entries.push_back(std::move(entry));
  }
  return out;
}

Result<void> write_backup(const std::string& path, const Snapshot& snapshot, const Backup& about) {
  unlink(path.c_str());
  remove_beside(path);
  {
    SKIFF_ASSIGN(const auto journal, open_sqlite_journal(path));
    SKIFF_TRY(journal->load());
    std::vector<Journal::Row> rows;
    rows.reserve(snapshot.entries.size());
    for (const EntryPtr& entry : snapshot.entries) {
      rows.push_back({.key = entry->key(), .revision = entry->revision(), .entry = entry});
    }
    SKIFF_TRY(journal->write(rows, snapshot.revision, Sync::kSynced));
  }
  SKIFF_ASSIGN(Database db, Database::open(path, Database::Mode::kReadWrite));
  // One file, without a log beside it.
  SKIFF_TRY(
      db.execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; BEGIN IMMEDIATE;"
                 "CREATE TABLE backup(key TEXT PRIMARY KEY, value);"
                 "CREATE TABLE backup_files(name TEXT PRIMARY KEY, sum INTEGER, bytes BLOB)"));
  SKIFF_TRY(put_about(db, "taken_at", about.taken_at));
  SKIFF_TRY(put_about(db, "taken_by", about.taken_by));
  SKIFF_TRY(put_about(db, "objects", std::to_string(snapshot.entries.size())));
  SKIFF_TRY(put_files(db, about.files));
  SKIFF_TRY(db.execute("COMMIT"));
  remove_beside(path);
  return {};
}

Result<Backup> open_backup(const std::string& copy, Revision seen) {
  Backup out;
  {
    SKIFF_ASSIGN(Database db, Database::open(copy, Database::Mode::kReadWrite));
    const auto whole = db.text("PRAGMA integrity_check");
    if (!whole) return no_backup(whole.error().message);
    if (*whole != "ok") return no_backup(*whole);
    auto about = read_about(db);
    if (!about) return no_backup(about.error().message);
    out = std::move(*about);
    SKIFF_TRY(db.execute("BEGIN IMMEDIATE; DROP TABLE backup; DROP TABLE backup_files; COMMIT"));
  }
  // Reads everything as the next start will, and says what is wrong with it.
  SKIFF_ASSIGN(const auto journal, open_sqlite_journal(copy));
  SKIFF_ASSIGN(const Journal::Loaded loaded, journal->load());
  if (loaded.entries.size() != out.objects) return no_backup("objects are missing");
  // For the clients of the store that this takes the place of, the world has moved on.
  const Revision next = std::max(seen, loaded.revision) + kLostRevisions;
  SKIFF_TRY(journal->write({}, next, Sync::kSynced));
  return out;
}

Revision last_revision(const std::string& objects_db) {
  if (access(objects_db.c_str(), F_OK) != 0) return 0;
  auto db = Database::open(objects_db, Database::Mode::kReadWrite);
  if (!db) return 0;
  db->checkpoint_on_close(false);
  const auto revision = db->integer("SELECT value FROM meta WHERE key = 'revision'");
  return revision ? static_cast<Revision>(*revision) : 0;
}

}  // namespace skiff::store
