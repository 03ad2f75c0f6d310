#include "store/backup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "env/posix/sqlite.h"
#include "store/journal.h"
#include "store/memory_journal.h"
#include "store/test_directory.h"

namespace skiff::store {
namespace {

Mutation put_value(std::string resource, std::string name, int n) {
  return {.key = {.resource = std::move(resource), .ns = "a", .name = name},
          .value = json::object{{"metadata", {{"name", name}}}, {"n", n}}};
}

Mutation removal(std::string resource, std::string name) {
  return {.key = {.resource = std::move(resource), .ns = "a", .name = std::move(name)}};
}

std::unique_ptr<Store> fresh_store(const std::string& path) {
  return *Store::open(*open_sqlite_journal(path), Store::Writer::kThread);
}

std::string file_in(const TestDirectory& directory, const std::string& name) {
  return directory.path() + "/" + name;
}

const Backup kAbout{.taken_at = "2026-11-15T00:00:00Z",
                    .taken_by = "v1",
                    .files = {{.name = "pki/ca.crt", .bytes = std::string("a\0b", 3)}}};

TEST(Backup, HoldsEveryObjectAndFile) {
  const TestDirectory directory;
  const auto store = fresh_store(file_in(directory, "objects.db"));
  ASSERT_TRUE(
      store->commit({put_value("pods", "p", 1), put_value("things.g", "t", 2)}, Sync::kSynced));
  ASSERT_TRUE(store->commit({put_value("pods", "q", 3)}, Sync::kLazy));
  ASSERT_TRUE(store->commit({removal("pods", "p")}, Sync::kSynced));
  const auto snapshot = take_snapshot(*store);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->revision, store->revision());
  EXPECT_EQ(snapshot->entries.size(), 2U);
  const std::string file = file_in(directory, "copy");
  const auto written = write_backup(file, *snapshot, kAbout);
  ASSERT_TRUE(written) << written.error().message;
  for (const char* tail : {"-wal", "-shm", "-journal", "-mark"}) {
    EXPECT_FALSE(std::filesystem::exists(file + tail)) << tail;
  }

  const auto backup = open_backup(file, 0);
  ASSERT_TRUE(backup) << backup.error().message;
  EXPECT_EQ(backup->objects, 2U);
  EXPECT_EQ(backup->revision, snapshot->revision);
  EXPECT_EQ(backup->taken_at, kAbout.taken_at);
  ASSERT_EQ(backup->files.size(), 1U);
  EXPECT_EQ(backup->files[0].name, "pki/ca.crt");
  EXPECT_EQ(backup->files[0].bytes, kAbout.files[0].bytes);

  const auto restored = fresh_store(file);
  const EntryPtr q = restored->get({.resource = "pods", .ns = "a", .name = "q"});
  ASSERT_TRUE(q);
  EXPECT_EQ(q->text(), store->get({.resource = "pods", .ns = "a", .name = "q"})->text());
  EXPECT_FALSE(restored->get({.resource = "pods", .ns = "a", .name = "p"}));
}

TEST(Backup, GoesOnBehindEveryRevisionThatAnybodyHasSeen) {
  const TestDirectory directory;
  const auto store = fresh_store(file_in(directory, "objects.db"));
  ASSERT_TRUE(store->commit({put_value("pods", "p", 1)}, Sync::kSynced));
  ASSERT_TRUE(write_backup(file_in(directory, "copy"), *take_snapshot(*store), kAbout));
  ASSERT_TRUE(open_backup(file_in(directory, "copy"), 5'000'000));
  const auto restored = fresh_store(file_in(directory, "copy"));
  EXPECT_GT(restored->revision(), 5'000'000U);
  const auto events = restored->events("pods", 4'999'999, Horizon::kVisible, 10);
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code, Code::kExpired);
}

TEST(Backup, TellsTheLastRevisionOfAStoppedStore) {
  const TestDirectory directory;
  EXPECT_EQ(last_revision(file_in(directory, "none")), 0U);
  Revision at = 0;
  {
    const auto store = fresh_store(file_in(directory, "objects.db"));
    ASSERT_TRUE(store->commit({put_value("pods", "p", 1)}, Sync::kSynced));
    at = store->revision();
  }
  EXPECT_EQ(last_revision(file_in(directory, "objects.db")), at);
}

TEST(Backup, IsOneMomentWhileOthersWrite) {
  const auto store =
      *Store::open(open_memory_journal(std::make_shared<MemoryDisk>()), Store::Writer::kThread);
  std::atomic<bool> stop = false;
  // Both always hold the same number, so a copy in which they differ is of no moment.
  std::jthread writer([&] {
    for (int n = 1; !stop; ++n) {
      // Refused while the writer is far behind.
      if (!store->commit({put_value("pods", "p", n), put_value("zebras", "z", n)}, Sync::kLazy)) {
        std::this_thread::yield();
      }
    }
  });
  while (store->revision() < 10) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    const auto snapshot = take_snapshot(*store);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    ASSERT_EQ(snapshot->entries.size(), 2U);
    const auto n = [&](std::size_t at) {
      return json::get_int(*snapshot->entries[at]->value(), {"n"}).value_or(-1);
    };
    const Revision newest =
        std::max(snapshot->entries[0]->revision(), snapshot->entries[1]->revision());
    EXPECT_LE(newest, snapshot->revision);
    EXPECT_EQ(n(0), n(1));
  }
  stop = true;
}

TEST(Backup, ADamagedOrForeignFileIsRefused) {
  const TestDirectory directory;
  const auto store = fresh_store(file_in(directory, "objects.db"));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store->commit({put_value("pods", "p" + std::to_string(i), i)}, Sync::kLazy));
  }
  const std::string good = file_in(directory, "good");
  ASSERT_TRUE(write_backup(good, *take_snapshot(*store), kAbout));
  const auto copy = [&](const std::string& name) {
    std::filesystem::copy_file(good, file_in(directory, name));
    return file_in(directory, name);
  };
  const auto change = [&](const std::string& name, const char* sql) {
    const std::string file = copy(name);
    auto db =
        env::posix::sqlite::Database::open(file, env::posix::sqlite::Database::Mode::kReadWrite);
    EXPECT_TRUE(db->execute(sql));
    return file;
  };
  const std::string cut = copy("cut");
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  EXPECT_FALSE(open_backup(cut, 0));
  std::ofstream(file_in(directory, "text")) << "hello, I am no database at all";
  EXPECT_FALSE(open_backup(file_in(directory, "text"), 0));
  EXPECT_FALSE(open_backup(change("less", "DELETE FROM objects WHERE name = 'p7'"), 0));
  EXPECT_FALSE(open_backup(change("bits", "UPDATE objects SET bytes = '{}' WHERE name = 'p7'"), 0));
  EXPECT_FALSE(open_backup(change("file", "UPDATE backup_files SET bytes = 'x'"), 0));
  EXPECT_FALSE(open_backup(change("name", "UPDATE backup_files SET name = '../../x'"), 0));
  EXPECT_FALSE(open_backup(change("plain", "DROP TABLE backup"), 0));
  EXPECT_FALSE(open_backup(change("newer", "UPDATE meta SET value = 99 WHERE key = 'format'"), 0));
  EXPECT_TRUE(open_backup(good, 0));
}

}  // namespace
}  // namespace skiff::store
