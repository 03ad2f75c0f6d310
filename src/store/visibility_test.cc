// When others may know: visibility, callbacks, group commit, a disk that refuses, power cuts.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <thread>

#include "store/journal.h"
#include "store/memory_journal.h"
#include "store/store.h"

namespace skiff::store {
namespace {

Key visible_key(std::string name) { return {"pods", "default", std::move(name)}; }
Mutation put_pod(std::string name) {
  return {.key = visible_key(std::move(name)), .value = json::object{}};
}

struct VisibilityFixture {
  explicit VisibilityFixture(Store::Writer writer = Store::Writer::kManual) { open(writer); }
  void open(Store::Writer writer = Store::Writer::kManual) {
    store.reset();
    store = std::move(*Store::open(open_memory_journal(disk), writer));
  }
  Revision commit(std::string name, Sync sync = Sync::kSynced) const {
    const auto done = store->commit({put_pod(std::move(name))}, sync);
    return done ? done->revision : 0;
  }
  void wait(Revision revision) const {
    // Shared, because set_value() may still be at work when the waiting thread goes on.
    const auto arrived = std::make_shared<std::promise<void>>();
    store->when_visible(revision, [arrived] { arrived->set_value(); });
    arrived->get_future().wait();
  }

  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::unique_ptr<Store> store;
};

TEST(Visibility, FollowsTheDisk) {
  const VisibilityFixture f;
  const Revision a = f.commit("a"), b = f.commit("b");
  std::string calls;
  f.store->when_visible(b, [&] { calls += 'b'; });
  f.store->when_visible(a, [&] { calls += 'a'; });
  f.store->when_visible(b + 1, [&] { calls += 'c'; });
  EXPECT_EQ(calls, "");
  EXPECT_EQ(f.store->visible(), 1);
  EXPECT_EQ(f.store->stats().waiting, 2);
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(calls, "ab") << "in order of revisions";
  EXPECT_EQ(f.store->visible(), b);
  EXPECT_EQ(f.store->stats().waiting, 0);
  f.store->when_visible(a, [&] { calls += '!'; });
  EXPECT_EQ(calls, "ab!") << "at once where it is visible already";
  f.commit("c");
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(calls, "ab!c");
}

TEST(Visibility, ManyCommitsAreOneWriteOfTheNewestRows) {
  const VisibilityFixture f;
  for (int i = 0; i < 50; ++i) f.commit(i % 2 == 0 ? "even" : "odd");
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(f.disk->stats().writes, 1);
  EXPECT_EQ(f.disk->stats().objects, 2);
  EXPECT_EQ(f.disk->stats().last, 51);
  EXPECT_EQ(f.store->stats().commits, 50);
  EXPECT_EQ(f.store->stats().syncs, 1);
}

TEST(Visibility, OneSyncedCommitMakesTheWholeBatchSynced) {
  const VisibilityFixture f;
  f.commit("a", Sync::kLazy);
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(f.disk->stats().syncs, 0);
  f.commit("b", Sync::kLazy);
  f.commit("c", Sync::kSynced);
  f.commit("d", Sync::kLazy);
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(f.disk->stats().syncs, 1);
  EXPECT_EQ(f.disk->stats().synced, f.store->revision());
}

TEST(Visibility, LazyWritesAreSyncedBeforeMoreAreAtRiskThanARestartSkips) {
  const VisibilityFixture f;
  for (int i = 0; i < 25'000; ++i) {
    f.commit("a", Sync::kLazy);
    ASSERT_TRUE(f.store->flush());
    ASSERT_LE(f.disk->stats().last - f.disk->stats().synced, kLostRevisions / 50);
  }
  EXPECT_GE(f.disk->stats().syncs, 2);
}

TEST(Subscriptions, HearOfTheirResourceAtTheirHorizon) {
  const VisibilityFixture f;
  int committed = 0, visible = 0, other = 0, all = 0;
  const auto a = f.store->subscribe("pods", Horizon::kCommitted, [&] { ++committed; });
  const auto b = f.store->subscribe("pods", Horizon::kVisible, [&] { ++visible; });
  const auto c = f.store->subscribe("nodes", Horizon::kCommitted, [&] { ++other; });
  const auto d = f.store->subscribe_all(Horizon::kVisible, [&] { ++all; });
  f.commit("a");
  f.commit("b");
  EXPECT_EQ(committed, 2);
  EXPECT_EQ(visible, 0);
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(committed, 2);
  EXPECT_EQ(visible, 1) << "once a batch";
  EXPECT_EQ(all, 1);
  EXPECT_EQ(other, 0);
}

TEST(Subscriptions, FindTheCommittersValueWithoutParsing) {
  const VisibilityFixture f;
  std::vector<Object> seen;
  const auto look = [&] { seen.push_back(f.store->get(visible_key("a"))->value()); };
  const auto a = f.store->subscribe("pods", Horizon::kCommitted, look);
  const auto b = f.store->subscribe("pods", Horizon::kVisible, [&] {
    const Object value = f.store->get(visible_key("a"))->value();
    EXPECT_GT(value.use_count(), 1) << "the queue still held it";
  });
  f.commit("a");
  ASSERT_EQ(seen.size(), 1);
  EXPECT_EQ(json::get_string(*seen[0], {"metadata", "resourceVersion"}), "2");
  seen.clear();
  ASSERT_TRUE(f.store->flush());
}

TEST(Subscriptions, ACallbackMayCommitAndIsCalledAgain) {
  const VisibilityFixture f;
  int calls = 0;
  const auto subscription = f.store->subscribe("pods", Horizon::kCommitted, [&] {
    if (++calls < 3) f.commit("again");
  });
  f.commit("a");
  EXPECT_EQ(calls, 3);
}

TEST(Subscriptions, MayOutliveTheStore) {
  VisibilityFixture f;
  int calls = 0;
  auto subscription = f.store->subscribe("pods", Horizon::kVisible, [&] { ++calls; });
  f.commit("a");
  f.store.reset();
  EXPECT_EQ(calls, 1) << "the end of the store writes what waits";
  subscription.reset();
}

TEST(Subscriptions, AreNeverCalledAfterTheirEnd) {
  const VisibilityFixture f(Store::Writer::kThread);
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) f.commit(std::to_string(t), Sync::kLazy);
    });
  }
  for (int round = 0; round < 300; ++round) {
    for (const Horizon horizon : {Horizon::kCommitted, Horizon::kVisible}) {
      // The flag dies right after the subscription: a late call would touch freed memory.
      auto alive = std::make_unique<std::atomic<int>>(1);
      auto subscription =
          f.store->subscribe("pods", horizon, [flag = alive.get()] { EXPECT_EQ(flag->load(), 1); });
      if (round % 3 == 0) std::this_thread::yield();
      subscription.reset();
      alive->store(0);
    }
  }
  stop = true;
}

TEST(Subscriptions, EndOnlyAfterACallThatIsUnderWay) {
  const VisibilityFixture f;
  std::latch entered(1);
  std::atomic<bool> ended = false;
  auto subscription = f.store->subscribe("pods", Horizon::kCommitted, [&] {
    entered.count_down();
    // Time enough for the other thread to end the subscription, if it does not wait for us.
    for (int i = 0; i < 20'000 && !ended; ++i) std::this_thread::yield();
    EXPECT_FALSE(ended);
  });
  const std::jthread other([&] {
    entered.wait();
    subscription.reset();
    ended = true;
  });
  f.commit("a");
}

TEST(FullDisk, RefusesWritesButReadsGoOnUntilItHeals) {
  const VisibilityFixture f;
  f.commit("a");
  ASSERT_TRUE(f.store->flush());
  const Revision before = f.store->visible();
  f.disk->fail("no space left");
  const Revision waiting = f.commit("b");
  ASSERT_NE(waiting, 0) << "nobody knows yet that the disk is full";
  bool told = false;
  f.store->when_visible(waiting, [&] { told = true; });
  EXPECT_FALSE(f.store->flush());

  const auto refused = f.store->commit({put_pod("c")}, Sync::kLazy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kServiceUnavailable);
  EXPECT_NE(refused.error().message.find("no space left"), std::string::npos);
  EXPECT_EQ(f.store->stats().refusing, "no space left");
  EXPECT_EQ(f.store->stats().waiting, 1);
  EXPECT_EQ(f.store->visible(), before);
  EXPECT_FALSE(told);
  EXPECT_NE(f.store->get(visible_key("a")), nullptr);
  EXPECT_FALSE(f.store->flush()) << "it is tried again";

  f.disk->heal();
  ASSERT_TRUE(f.store->flush());
  EXPECT_TRUE(told);
  EXPECT_EQ(f.store->visible(), waiting);
  EXPECT_EQ(f.store->stats().refusing, "");
  EXPECT_NE(f.commit("c"), 0);
}

TEST(FullDisk, TheWriterThreadRecoversByItself) {
  const VisibilityFixture f(Store::Writer::kThread);
  f.disk->fail("no space left");
  const Revision waiting = f.commit("a");
  while (f.store->stats().refusing.empty()) std::this_thread::yield();
  EXPECT_EQ(f.commit("b"), 0);
  EXPECT_LT(f.store->visible(), waiting);
  f.disk->heal();
  f.wait(waiting);
  EXPECT_NE(f.commit("b"), 0);
}

TEST(FullDisk, DoesNotStopTheStoreFromEnding) {
  VisibilityFixture f(Store::Writer::kThread);
  f.disk->fail("no space left");
  f.commit("a");
  f.store.reset();
  EXPECT_EQ(f.disk->stats().objects, 0);
}

TEST(MemoryDisk, ACrashKeepsWhatWasWrittenAndAPowerCutWhatWasSynced) {
  for (const bool power : {false, true}) {
    SCOPED_TRACE(power ? "power cut" : "crash");
    VisibilityFixture f;
    f.commit("synced", Sync::kSynced);
    ASSERT_TRUE(f.store->flush());
    const Revision lazy = f.commit("lazy", Sync::kLazy);
    ASSERT_TRUE(f.store->flush());
    f.commit("unwritten");
    power ? f.disk->power_cut() : f.disk->crash();
    f.open();
    EXPECT_NE(f.store->get(visible_key("synced")), nullptr);
    EXPECT_EQ(f.store->get(visible_key("lazy")) == nullptr, power);
    EXPECT_EQ(f.store->get(visible_key("unwritten")), nullptr);
    // Whoever has seen the lost revision must not mistake a new one for it.
    const auto events = f.store->events("pods", lazy, Horizon::kVisible, 10);
    EXPECT_EQ(events.has_value(), !power);
    if (!events) EXPECT_EQ(events.error().code, Code::kExpired);
  }
}

TEST(Threads, RevisionsAreOneUnbrokenSequenceWhoeverCommits) {
  VisibilityFixture f(Store::Writer::kThread);
  constexpr int kThreads = 8, kCommits = 200;
  std::atomic<int> reached = 0;
  // By address: f.store is already empty while the store ends, and the store still calls.
  Store* const store = f.store.get();
  std::size_t listed = 0;
  const auto reader = store->subscribe_all(
      Horizon::kVisible, [&, store] { listed = store->list("pods").entries.size(); });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCommits; ++i) {
          const Sync sync = i % 3 == 0 ? Sync::kSynced : Sync::kLazy;
          const auto done =
              store->commit({put_pod("own" + std::to_string(t)), put_pod("shared")}, sync);
          ASSERT_TRUE(done);
          store->when_visible(done->revision, [&, at = done->revision] {
            if (store->visible() >= at) ++reached;
          });
        }
      });
    }
  }
  f.wait(f.store->revision());
  const auto events = f.store->events("pods", 1, Horizon::kVisible, 100'000);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 2 * kThreads * kCommits);
  std::map<Key, EntryPtr> replayed;
  for (std::size_t i = 0; i < events->size(); ++i) {
    const Event& event = (*events)[i];
    ASSERT_EQ(event.entry->revision(), i + 2);
    ASSERT_EQ(event.previous, replayed[event.entry->key()]);
    replayed[event.entry->key()] = event.entry;
  }
  f.open();  // The writer thread has ended: every callback has run.
  EXPECT_EQ(reached, kThreads * kCommits);
  EXPECT_EQ(listed, kThreads + 1);
  for (const auto& [k, entry] : replayed) EXPECT_EQ(f.store->get(k)->text(), entry->text());
}

}  // namespace
}  // namespace skiff::store
