#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/limits.h"
#include "store/backup.h"
#include "store/memory_journal.h"
#include "store/store.h"
#include "store/test_directory.h"

namespace skiff::store {
namespace {

constexpr std::size_t kAll = 1'000'000;

Key pack_key(int n) {
  return {.resource = "pods", .ns = "default", .name = fmt::format("p-{}", n)};
}

Mutation put_packed(int n, std::string_view image = "one") {
  return {.key = pack_key(n),
          .value = json::object{
              {"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", pack_key(n).name}, {"labels", {{"of", "a test of packing"}}}}},
              {"spec",
               {{"containers", json::array{json::object{{"name", "main"},
                                                        {"image", json::string(image)},
                                                        {"command", {"sleep", "forever"}}}}}}}}};
}

struct PackFixture {
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::unique_ptr<Store> store = open();

  std::unique_ptr<Store> open() const {
    return std::move(*Store::open(open_memory_journal(disk), Store::Writer::kManual));
  }
  void fill(int from, int until, std::string_view image = "one") const {
    for (int i = from; i < until; ++i)
      ASSERT_TRUE(store->commit({put_packed(i, image)}, Sync::kLazy));
  }
  std::size_t packed() const {
    std::size_t n = 0;
    for (const EntryPtr& entry : store->list("pods").entries) n += entry->packed() ? 1 : 0;
    return n;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const EntryPtr& entry : store->list("pods").entries) out.push_back(entry->text().str());
    return out;
  }
};

TEST(Pack, LeavesTheYoungAloneAndEndsWhenAllIsPacked) {
  const PackFixture f;
  f.fill(0, 100);
  const Revision old = f.store->revision();
  f.fill(100, 150);
  const auto before = f.texts();
  EXPECT_EQ(f.store->pack(old, kAll), 100U);
  EXPECT_EQ(f.packed(), 100U);
  EXPECT_FALSE(f.store->get(pack_key(120))->packed());
  EXPECT_EQ(f.texts(), before);
  f.store->pack(old, kAll);
  EXPECT_EQ(f.store->pack(old, kAll), 0U);
  EXPECT_EQ(f.store->pack(f.store->revision(), kAll), 50U);
  EXPECT_EQ(f.store->pack(f.store->revision(), kAll), 0U);
  EXPECT_EQ(f.packed(), 150U);
  EXPECT_EQ(f.texts(), before);
}

TEST(Pack, TakesNoMoreAtOnceThanItIsTold) {
  const PackFixture f;
  f.fill(0, 100);
  EXPECT_EQ(f.store->pack(f.store->revision(), 60), 60U);
  EXPECT_EQ(f.packed(), 60U);
  EXPECT_EQ(f.store->pack(f.store->revision(), 60), 40U);
  EXPECT_EQ(f.packed(), 100U);
}

TEST(Pack, AFewObjectsAreNotWorthItUntilMoreCome) {
  const PackFixture f;
  f.fill(0, 10);
  EXPECT_EQ(f.store->pack(f.store->revision(), kAll), 10U);
  EXPECT_EQ(f.store->pack(f.store->revision(), kAll), 0U);
  EXPECT_EQ(f.packed(), 0U);
  f.fill(10, 50);
  while (f.store->pack(f.store->revision(), kAll) > 0) {
  }
  EXPECT_EQ(f.packed(), 50U) << "those that were left plain too";
}

TEST(Pack, ObjectsThatWereLoadedAreOld) {
  PackFixture f;
  f.fill(0, 100);
  ASSERT_TRUE(f.store->flush());
  const auto before = f.texts();
  f.store.reset();
  f.store = f.open();
  EXPECT_EQ(f.store->pack(f.store->revision(), 70), 70U);
  EXPECT_EQ(f.store->pack(f.store->revision(), 70), 30U);
  EXPECT_EQ(f.packed(), 100U);
  EXPECT_EQ(f.texts(), before);
}

TEST(Pack, FindsWhatLeftHistoryBeforeItWasOld) {
  const PackFixture f;
  f.fill(0, 100);
  // One busy object drives the others out of history.
  for (std::size_t i = 0; i < limits::kWatchEvents; ++i) {
    ASSERT_TRUE(f.store->commit({put_packed(1'000, "busy")}, Sync::kLazy));
  }
  ASSERT_EQ(f.store->events("pods", 50, Horizon::kCommitted, 1).error().code, Code::kExpired);
  while (f.store->pack(f.store->revision(), kAll) > 0) {
  }
  EXPECT_EQ(f.packed(), 101U);
}

TEST(Pack, TakesWhatWasLoadedAndChangedSinceFromHistory) {
  PackFixture f;
  f.fill(0, 100);
  ASSERT_TRUE(f.store->flush());
  f.store.reset();
  f.store = f.open();
  const Revision start = f.store->revision();
  f.store->pack(start, 70);
  ASSERT_FALSE(f.store->get(pack_key(99))->packed()) << "its turn has not come";
  ASSERT_TRUE(f.store->commit({put_packed(99, "two")}, Sync::kLazy));
  while (f.store->pack(f.store->revision(), kAll) > 0) {
  }
  const auto events = f.store->events("pods", start, Horizon::kCommitted, 10);
  ASSERT_TRUE(events);
  EXPECT_TRUE(events->front().previous->packed());
}

TEST(Pack, WhatIsPackedCanBeChangedRemovedAndToldOf) {
  const PackFixture f;
  f.fill(0, 100);
  const Revision start = f.store->revision();
  f.store->pack(start, kAll);
  const std::string was = f.store->get(pack_key(7))->text().str();
  ASSERT_TRUE(f.store->commit({put_packed(7, "two")}, Sync::kLazy));
  ASSERT_TRUE(f.store->commit({{.key = pack_key(8)}}, Sync::kLazy));
  for (const bool later : {false, true}) {
    if (later) f.store->pack(f.store->revision(), kAll);
    const auto events = f.store->events("pods", start, Horizon::kCommitted, 10);
    ASSERT_TRUE(events);
    ASSERT_EQ(events->size(), 2U);
    const Event &changed = events->front(), &removed = events->back();
    EXPECT_EQ(changed.entry->packed(), later);
    EXPECT_TRUE(changed.previous->packed());
    EXPECT_EQ(changed.previous->text(), was);
    EXPECT_TRUE(changed.entry->text().view().contains(R"("image":"two")"));
    EXPECT_TRUE(removed.entry->text().view().contains(
        fmt::format(R"("resourceVersion":"{}")", removed.entry->revision())));
  }
}

TEST(Pack, TheJournalGetsTheTextOfWhatIsPackedBeforeItIsWritten) {
  PackFixture f;
  f.fill(0, 100);
  const auto before = f.texts();
  f.store->pack(f.store->revision(), kAll);
  ASSERT_EQ(f.packed(), 100U);
  ASSERT_TRUE(f.store->flush());
  f.store.reset();
  f.store = f.open();
  EXPECT_EQ(f.texts(), before);
}

TEST(Pack, ABackupHoldsTheTextOfWhatIsPacked) {
  const TestDirectory directory;
  const PackFixture f;
  f.fill(0, 100);
  const auto before = f.texts();
  f.store->pack(f.store->revision(), kAll);
  const auto snapshot = take_snapshot(*f.store);
  ASSERT_TRUE(snapshot);
  const std::string file = directory.path() + "/copy";
  ASSERT_TRUE(write_backup(file, *snapshot, {.taken_at = "today", .taken_by = "v1"}));
  const auto opened = open_backup(file, 0);
  ASSERT_TRUE(opened) << opened.error().message;
  PackFixture restored;
  restored.store = *Store::open(*open_sqlite_journal(file), Store::Writer::kManual);
  EXPECT_EQ(restored.texts(), before);
}

TEST(Pack, WhileOthersReadAndWrite) {
  const PackFixture f;
  f.fill(0, 200);
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; i < 600; ++i) f.fill(i % 200, i % 200 + 1, std::to_string(i));
    done = true;
  });
  std::jthread reader([&] {
    while (!done) {
      for (const EntryPtr& entry : f.store->list("pods").entries) {
        const std::string revision = fmt::format(R"("resourceVersion":"{}")", entry->revision());
        EXPECT_TRUE(entry->text().view().contains(revision));
      }
    }
  });
  while (!done) f.store->pack(f.store->revision(), 50);
  writer.join();
  reader.join();
  while (f.store->pack(f.store->revision(), kAll) > 0) {
  }
  EXPECT_EQ(f.packed(), 200U);
  for (const EntryPtr& entry : f.store->list("pods").entries) {
    EXPECT_EQ(json::serialize(*entry->value()), entry->text().str());
  }
}

}  // namespace
}  // namespace skiff::store
