// The disk fills up, or fails, at every single write of real SQLite: what is refused is refused
// clearly, what was confirmed stays, reading goes on, and with room again everything does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "env/testing/sim_disk.h"
#include "store/sqlite_journal.h"
#include "store/store.h"

namespace skiff::store {
namespace {

using env::testing::SimDisk;
using State = std::map<std::string, std::string>;

State state_of(const Store& store) {
  State state;
  for (const EntryPtr& entry : store.list("pods").entries) {
    state[entry->key().name] = entry->text().str();
  }
  return state;
}

Mutation put_state(int i) {
  // Every third is larger than a page; few names, so that pages change again and again.
  const std::string text(static_cast<std::size_t>(i % 3 == 0 ? 9'000 : 300), 'x');
  return {.key = {"pods", "default", fmt::format("pod-{}", i % 7)},
          .value = json::object{{"n", i}, {"text", text}}};
}

class FullDiskTest : public testing::TestWithParam<SimDisk::Fault> {
 protected:
  Result<std::unique_ptr<Store>> try_open() {
    SKIFF_ASSIGN(auto journal,
                 open_sqlite_journal(kPath, {.vfs = disk->vfs(),
                                             .boot = "a boot",
                                             .checkpoint_pages = 6,  // so that checkpoints fail too
                                             .sync_folder = [] { return Result<void>(); },
                                             .sync_lost = [](std::string_view) {}}));
    return Store::open(std::move(journal), Store::Writer::kManual);
  }

  // One flush on a disk that fails; then everything but writing must work.
  void expect_refusing(Revision visible, Revision waiting) {
    const std::string why = store->stats().refusing;
    EXPECT_NE(why.find(kPath), std::string::npos) << why;
    if (GetParam() == SimDisk::Fault::kFull) EXPECT_TRUE(why.contains("is full")) << why;
    EXPECT_EQ(store->visible(), visible);
    const auto refused = store->commit({put_state(99)}, Sync::kSynced);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kServiceUnavailable);
    EXPECT_TRUE(refused.error().message.contains(why)) << refused.error().message;
    EXPECT_EQ(store->revision(), waiting) << "what is refused leaves no trace";
    const auto events = store->events("pods", 1, Horizon::kVisible, 1'000);
    ASSERT_TRUE(events) << "a watch goes on";
    if (!events->empty()) EXPECT_EQ(events->back().entry->revision(), visible);
    EXPECT_FALSE(store->flush()) << "it is tried again, and fails again";
  }

  // Commits and flushes, and heals the disk where that fails. The number of failures.
  int work(int commits) {
    int failures = 0;
    for (int i = 0; i < commits; ++i) {
      const Revision visible = store->visible();
      const auto done =
          store->commit({put_state(i), put_state(i + 3)}, i % 2 ? Sync::kLazy : Sync::kSynced);
      if (!done) ADD_FAILURE() << done.error().message;
      if (!done) return failures;
      int answers = 0, refusals = 0;
      store->when_visible(done->revision, [&] { ++answers; }, [&](const Error&) { ++refusals; });
      if (!store->flush()) {
        ++failures;
        EXPECT_EQ(refusals, 1) << "whoever waits is told at once";
        expect_refusing(visible, done->revision);
        disk->heal();
        const auto again = store->flush();
        if (!again) ADD_FAILURE() << again.error().message;
        EXPECT_EQ(answers, 0) << "it is answered once";
      } else {
        EXPECT_EQ(answers, 1);
      }
      EXPECT_EQ(store->visible(), done->revision);
      EXPECT_EQ(store->stats().refusing, "");
    }
    return failures;
  }

  static constexpr const char* kPath = "/disk/objects.db";
  std::unique_ptr<SimDisk> disk;
  std::unique_ptr<Store> store;
};

TEST_P(FullDiskTest, EveryWriteMayFailAndNothingIsLost) {
  int failed_starts = 0, failed_flushes = 0;
  for (std::uint64_t at = 0;; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    disk = std::make_unique<SimDisk>(at);
    disk->fail_from(at, GetParam());
    auto opened = try_open();
    if (!opened) {
      ++failed_starts;
      EXPECT_TRUE(opened.error().message.contains(kPath)) << opened.error().message;
      disk->heal();
      opened = try_open();
    }
    ASSERT_TRUE(opened) << opened.error().message;
    store = std::move(*opened);
    const int failures = work(12);
    failed_flushes += failures;
    const bool past_the_end = !disk->struck();
    const State before = state_of(*store);
    const Revision last = store->revision();
    store.reset();
    disk->heal();
    auto again = try_open();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(state_of(**again), before);
    EXPECT_EQ((*again)->revision(), last);
    if (HasFailure() || past_the_end) break;
  }
  EXPECT_GT(failed_starts, 5);
  EXPECT_GT(failed_flushes, 60) << "the disk fails too seldom to prove anything";
}

TEST_P(FullDiskTest, KilledWhileItIsFullItKeepsWhatWasConfirmed) {
  int kills = 0;
  for (std::uint64_t at = 40; at < 140; ++at) {
    SCOPED_TRACE(fmt::format("operation {}", at));
    disk = std::make_unique<SimDisk>(at);
    store = std::move(*try_open());
    disk->fail_from(at, GetParam());
    State confirmed, newest;
    for (int i = 0; i < 30 && store->stats().refusing.empty(); ++i) {
      ASSERT_TRUE(store->commit({put_state(i)}, Sync::kLazy));
      newest = state_of(*store);
      if (store->flush()) confirmed = newest;
    }
    disk->crash();
    store.reset();
    store = std::move(*try_open());
    const State found = state_of(*store);
    EXPECT_TRUE(found == confirmed || found == newest);
    if (confirmed != newest) ++kills;
    store.reset();
  }
  EXPECT_GT(kills, 50);
}

INSTANTIATE_TEST_SUITE_P(All, FullDiskTest,
                         testing::Values(SimDisk::Fault::kFull, SimDisk::Fault::kIo),
                         [](const auto& of) {
                           return of.param == SimDisk::Fault::kFull ? "NoRoom" : "BrokenWrites";
                         });

TEST(FullDisk, AStoreStartsOnAFullDiskAndCanBeRead) {
  SimDisk disk(1);
  const auto open = [&] {
    auto journal =
        open_sqlite_journal("/disk/objects.db", {.vfs = disk.vfs(),
                                                 .sync_folder = [] { return Result<void>(); },
                                                 .sync_lost = [](std::string_view) {}});
    EXPECT_TRUE(journal) << journal.error().message;
    return std::move(*Store::open(std::move(*journal), Store::Writer::kManual));
  };
  auto store = open();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(store->commit({put_state(i)}, Sync::kSynced));
  ASSERT_TRUE(store->flush());
  const State before = state_of(*store);
  disk.crash();  // the log has pages that a start would fold into the file
  store.reset();
  disk.fail_from(disk.operations(), SimDisk::Fault::kFull);
  store = open();
  EXPECT_EQ(state_of(*store), before);
  EXPECT_TRUE(disk.struck());
  ASSERT_TRUE(store->commit({put_state(1)}, Sync::kSynced));
  EXPECT_FALSE(store->flush());
  disk.heal();
  EXPECT_TRUE(store->flush());
}

}  // namespace
}  // namespace skiff::store
