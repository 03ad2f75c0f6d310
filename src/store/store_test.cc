#include "store/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/limits.h"
#include "store/journal.h"
#include "store/memory_journal.h"

namespace skiff::store {
namespace {

json::value pod(std::string_view text) {
  return json::object{
      {"kind", "Pod"}, {"metadata", json::object{{"name", "x"}}}, {"text", json::value(text)}};
}

Key pod_key(std::string name, std::string ns = "default", std::string resource = "pods") {
  return {std::move(resource), std::move(ns), std::move(name)};
}

std::string version(const EntryPtr& entry) {
  return std::string(json::get_string(*entry->value(), {"metadata", "resourceVersion"}));
}

struct StoreFixture {
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::unique_ptr<Store> store = open(Store::Writer::kManual);

  std::unique_ptr<Store> open(Store::Writer writer) const {
    return std::move(*Store::open(open_memory_journal(disk), writer));
  }
  EntryPtr put(const Key& k, std::string_view text, Sync sync = Sync::kSynced) const {
    auto done = store->commit({{.key = k, .value = pod(text)}}, sync);
    return done ? done->entries[0] : nullptr;
  }
};

TEST(Store, AnEmptyStoreIsAtRevisionOneBecauseZeroMeansAny) {
  const StoreFixture f;
  EXPECT_EQ(f.store->revision(), 1);
  EXPECT_EQ(f.store->visible(), 1);
  EXPECT_TRUE(f.store->list("pods").entries.empty());
  EXPECT_EQ(f.store->list("pods").revision, 1);
}

TEST(Store, ACommitPutsTheRevisionIntoBytesAndValue) {
  const StoreFixture f;
  const EntryPtr entry = f.put(pod_key("a"), "hello");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->revision(), 2);
  EXPECT_EQ(entry->text().str(),
            R"({"kind":"Pod","metadata":{"name":"x","resourceVersion":"2"},"text":"hello"})");
  EXPECT_EQ(version(entry), "2");
  EXPECT_EQ(f.store->get(pod_key("a")), entry);
}

TEST(Store, TheValueOfTheCommitterAndTheBytesAgree) {
  const StoreFixture f;
  const EntryPtr entry = f.put(pod_key("a"), "hello");
  const Object seeded = entry->value();
  EXPECT_EQ(json::serialize(*seeded), entry->text().str());
  EXPECT_EQ(entry->value(), seeded) << "held values are shared, not parsed again";
}

TEST(Store, AnObjectThatHoldsTheMarkItselfIsKeptAsItIs) {
  const StoreFixture f;
  const std::string text = "<the revision, mark 0><the revision, mark 1>";
  const EntryPtr entry = f.put(pod_key("a"), text);
  EXPECT_EQ(json::get_string(*entry->value(), {"text"}), text);
  EXPECT_EQ(version(entry), "2");
  EXPECT_NE(entry->text().str().find(R"("text":"<the revision, mark 0>)"), std::string::npos);
}

struct Expectation {
  const char* name;
  bool exists;
  bool removes;
  std::optional<Revision> expected;  // the object, where it exists, is at revision 2
  std::optional<Code> refused;
};

TEST(Store, ExpectationsAreChecked) {
  const Expectation cases[] = {
      {"create where nothing is", false, false, 0, {}},
      {"create over an object", true, false, 0, Code::kAlreadyExists},
      {"update at the right revision", true, false, 2, {}},
      {"update at an old revision", true, false, 1, Code::kConflict},
      {"update of nothing", false, false, 2, Code::kNotFound},
      {"write without condition where nothing is", false, false, {}, {}},
      {"write without condition over an object", true, false, {}, {}},
      {"remove at the right revision", true, true, 2, {}},
      {"remove at an old revision", true, true, 1, Code::kConflict},
      {"remove without condition", true, true, {}, {}},
      {"remove of nothing", false, true, {}, Code::kNotFound},
  };
  for (const Expectation& c : cases) {
    SCOPED_TRACE(c.name);
    const StoreFixture f;
    const Key k = pod_key("a", "default", "tfjobs.kubeflow.org");
    if (c.exists) f.put(k, "first");
    const Revision before = f.store->revision();
    Mutation mutation{.key = k, .expected = c.expected};
    if (!c.removes) mutation.value = pod("second");
    const auto done = f.store->commit({std::move(mutation)}, Sync::kSynced);
    if (!c.refused) {
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(f.store->get(k) == nullptr, c.removes);
      EXPECT_EQ(f.store->revision(), before + 1);
      continue;
    }
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, *c.refused);
    EXPECT_EQ(done.error().resource, "tfjobs");
    EXPECT_EQ(done.error().group, "kubeflow.org");
    EXPECT_EQ(done.error().name, "a");
    EXPECT_NE(done.error().message.find("tfjobs.kubeflow.org \"a\""), std::string::npos);
    EXPECT_EQ(f.store->revision(), before);
  }
}

TEST(Store, ACommitFailsWhereWhatItDependsOnHasChanged) {
  const StoreFixture f;
  f.put(pod_key("a"), "first");
  const std::vector<Mutation> write{{.key = pod_key("b"), .value = pod("new")}};
  const auto with = [&](Check check) {
    const auto done = f.store->commit(write, Sync::kSynced, {std::move(check)});
    return done ? std::optional<Code>() : done.error().code;
  };
  EXPECT_EQ(with({.key = pod_key("a"), .expected = 1}), Code::kConflict);
  EXPECT_EQ(with({.key = pod_key("a"), .expected = 0}), Code::kAlreadyExists);
  EXPECT_EQ(with({.key = pod_key("c"), .expected = 2}), Code::kNotFound);
  EXPECT_EQ(f.store->revision(), 2);
  EXPECT_EQ(with({.key = pod_key("c"), .expected = 0}), std::nullopt);
  EXPECT_EQ(with({.key = pod_key("a"), .expected = 2}), std::nullopt);
  EXPECT_EQ(f.store->revision(), 4);
  EXPECT_EQ(f.store->get(pod_key("a"))->revision(), 2);  // checked, not written
  EXPECT_FALSE(f.store->commit({}, Sync::kSynced, {{.key = pod_key("a"), .expected = 1}}));
}

TEST(Store, ATransactionIsAllOrNothing) {
  const StoreFixture f;
  f.put(pod_key("b"), "first");
  const auto done = f.store->commit({{.key = pod_key("a"), .value = pod("new")},
                                     {.key = pod_key("b"), .expected = 77, .value = pod("new")}},
                                    Sync::kSynced);
  ASSERT_FALSE(done);
  EXPECT_EQ(f.store->get(pod_key("a")), nullptr);
  EXPECT_EQ(f.store->revision(), 2);
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kCommitted, 10)->size(), 1);
}

TEST(Store, EachMutationOfATransactionHasItsOwnRevision) {
  const StoreFixture f;
  const auto done =
      f.store->commit({{.key = pod_key("a"), .value = pod("1")},
                       {.key = pod_key("b", "", "nodes"), .value = pod("2")},
                       {.key = pod_key("a"), .expected = 2, .value = pod("3")},
                       {.key = pod_key("b", "", "nodes")},
                       {.key = pod_key("b", "", "nodes"), .expected = 0, .value = pod("4")}},
                      Sync::kSynced);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->revision, 6);
  ASSERT_EQ(done->entries.size(), 5);
  for (Revision i = 0; i < 5; ++i) {
    EXPECT_EQ(done->entries[i]->revision(), i + 2);
    EXPECT_EQ(version(done->entries[i]), std::to_string(i + 2));
  }
  EXPECT_EQ(f.store->get(pod_key("a")), done->entries[2]);
  const auto nodes = f.store->events("nodes", 1, Horizon::kCommitted, 10);
  ASSERT_EQ(nodes->size(), 3);
  EXPECT_EQ((*nodes)[1].type, EventType::kDeleted);
  EXPECT_EQ((*nodes)[2].type, EventType::kAdded);
}

TEST(Store, NobodySeesTheRevisionOfHalfACommit) {
  constexpr int kMany = 100;
  const StoreFixture f;
  std::atomic<bool> stop = false;
  std::atomic<int> half = 0;
  {
    const std::jthread reader([&] {
      while (!stop) half += f.store->revision() % kMany == 1 ? 0 : 1;
    });
    for (int i = 0; i < 100; ++i) {
      std::vector<Mutation> mutations;
      for (int k = 0; k < kMany; ++k) {
        mutations.push_back({.key = pod_key(fmt::format("k{}", k)), .value = pod("x")});
      }
      EXPECT_TRUE(f.store->commit(std::move(mutations), Sync::kLazy));
      EXPECT_TRUE(f.store->flush());
    }
    stop = true;
  }
  EXPECT_EQ(half, 0) << "the store begins at 1, and each commit has a hundred";
}

TEST(Store, ALaterMutationMeetsWhatAnEarlierOneLeft) {
  const StoreFixture f;
  f.put(pod_key("a"), "first");
  const auto twice = f.store->commit({{.key = pod_key("a")}, {.key = pod_key("a")}}, Sync::kSynced);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kNotFound);
  EXPECT_NE(f.store->get(pod_key("a")), nullptr);
}

TEST(Store, NoMutationsChangeNothing) {
  const StoreFixture f;
  const auto done = f.store->commit({}, Sync::kSynced);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->revision, 1);
}

TEST(Store, ARemovedObjectIsStampedWithTheRevisionOfItsRemoval) {
  const StoreFixture f;
  // The second object holds the same member twice, so that text alone cannot tell which to change.
  json::value nested = pod("x");
  json::set(nested, {"status", "resourceVersion"}, "3");
  f.put(pod_key("a"), "last words");
  ASSERT_TRUE(f.store->commit({{.key = pod_key("b"), .value = nested}}, Sync::kSynced));
  const auto done = f.store->commit({{.key = pod_key("a")}, {.key = pod_key("b")}}, Sync::kSynced);
  ASSERT_TRUE(done);
  EXPECT_EQ(version(done->entries[0]), "4");
  EXPECT_EQ(json::get_string(*done->entries[0]->value(), {"text"}), "last words");
  EXPECT_EQ(version(done->entries[1]), "5");
  EXPECT_EQ(json::get_string(*done->entries[1]->value(), {"status", "resourceVersion"}), "3");
  const auto events = f.store->events("pods", 3, Horizon::kCommitted, 10);
  ASSERT_EQ(events->size(), 2);
  EXPECT_EQ((*events)[0].type, EventType::kDeleted);
  EXPECT_EQ((*events)[0].entry, done->entries[0]);
  EXPECT_EQ((*events)[0].previous->revision(), 2);
}

TEST(Store, ListsAreOrderedByNamespaceThenName) {
  const StoreFixture f;
  for (const auto& [ns, name] : {std::pair{"b", "1"}, {"a", "2"}, {"a-b", "0"}, {"a", "1"}}) {
    f.put(pod_key(name, ns), "");
  }
  f.put(pod_key("n1", "", "nodes"), "");
  std::vector<std::string> found;
  for (const EntryPtr& e : f.store->list("pods").entries) {
    found.push_back(e->key().ns + "/" + e->key().name);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"a/1", "a/2", "a-b/0", "b/1"}));
  EXPECT_EQ(f.store->list("pods", "a").entries.size(), 2);
  EXPECT_EQ(f.store->list("pods", "c").entries.size(), 0);
  EXPECT_EQ(f.store->list("nodes").entries.size(), 1);
  EXPECT_EQ(f.store->list("jobs").entries.size(), 0);
  EXPECT_EQ(f.store->resources(), (std::vector<std::string>{"nodes", "pods"}));
  EXPECT_EQ(f.store->stats().objects, 5);
}

TEST(Store, AListingStaysAsItWasWhileTheStoreGoesOn) {
  const StoreFixture f;
  f.put(pod_key("a"), "before");
  const Listing listing = f.store->list("pods");
  f.put(pod_key("a"), "after");
  EXPECT_EQ(json::get_string(*listing.entries[0]->value(), {"text"}), "before");
  EXPECT_EQ(listing.revision, 2);
}

TEST(Events, TellAddedModifiedDeletedInOrder) {
  const StoreFixture f;
  const EntryPtr first = f.put(pod_key("a"), "1");
  f.put(pod_key("other", "", "nodes"), "");
  const EntryPtr second = f.put(pod_key("a"), "2");
  ASSERT_TRUE(f.store->commit({{.key = pod_key("a")}}, Sync::kSynced));
  const auto events = f.store->events("pods", 1, Horizon::kCommitted, 10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 3);
  EXPECT_EQ((*events)[0].type, EventType::kAdded);
  EXPECT_EQ((*events)[0].previous, nullptr);
  EXPECT_EQ((*events)[1].type, EventType::kModified);
  EXPECT_EQ((*events)[1].previous, first);
  EXPECT_EQ((*events)[2].previous, second);
  EXPECT_EQ(f.store->events("pods", 2, Horizon::kCommitted, 10)->size(), 2);
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kCommitted, 2)->size(), 2);
  EXPECT_TRUE(f.store->events("pods", 5, Horizon::kCommitted, 10)->empty());
  EXPECT_TRUE(f.store->events("pods", 9'999, Horizon::kCommitted, 10)->empty())
      << "a revision of the future is not an error";
  EXPECT_TRUE(f.store->events("jobs", 1, Horizon::kCommitted, 10)->empty());
}

TEST(Events, AreHiddenFromTheOutsideUntilWritten) {
  const StoreFixture f;
  f.put(pod_key("a"), "1");
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kCommitted, 10)->size(), 1);
  EXPECT_TRUE(f.store->events("pods", 1, Horizon::kVisible, 10)->empty());
  ASSERT_TRUE(f.store->flush());
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kVisible, 10)->size(), 1);
}

TEST(Events, HistoryIsBoundedAndWhatItForgotIsExpired) {
  const StoreFixture f;
  f.put(pod_key("n", "", "nodes"), "");
  for (std::size_t i = 0; i < limits::kWatchEvents + 10; ++i) f.put(pod_key("a"), "x", Sync::kLazy);
  // Revisions 3 to kWatchEvents + 12 were given; the ten oldest are forgotten.
  const auto gone = f.store->events("pods", 11, Horizon::kCommitted, 1);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kExpired);
  const auto kept = f.store->events("pods", 12, Horizon::kCommitted, 1'000'000);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), limits::kWatchEvents);
  EXPECT_EQ(kept->front().entry->revision(), 13);
  EXPECT_EQ(f.store->events("nodes", 1, Horizon::kCommitted, 10)->size(), 1)
      << "a busy resource does not cost a quiet one its history";
}

TEST(Events, LargeObjectsShortenHistory) {
  const StoreFixture f;
  const std::string large(1024 * 1024, 'x');
  for (int i = 0; i < 70; ++i) f.put(pod_key("a"), large);
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kCommitted, 1).error().code, Code::kExpired);
  EXPECT_GT(f.store->events("pods", 20, Horizon::kCommitted, 1'000)->size(), 40);
}

TEST(Events, OfHistoryThatIsOldOnlyTheNewestPartStays) {
  const StoreFixture f;
  const std::string large(256 * 1024, 'x');
  f.put(pod_key("n", "", "nodes"), "");
  for (int i = 0; i < 20; ++i) f.put(pod_key("a"), large);
  const Revision old = f.store->revision();
  for (int i = 0; i < 20; ++i) f.put(pod_key("a"), large);
  f.store->forget_history(old);
  EXPECT_TRUE(f.store->events("pods", 1, Horizon::kCommitted, 1))
      << "what is not on disk yet is kept";
  ASSERT_TRUE(f.store->flush());
  f.store->forget_history(old);
  EXPECT_EQ(f.store->events("pods", old - 1, Horizon::kCommitted, 1).error().code, Code::kExpired);
  EXPECT_EQ(f.store->events("pods", old, Horizon::kCommitted, 100)->size(), 20)
      << "what is recent is kept whole";
  EXPECT_TRUE(f.store->events("nodes", 1, Horizon::kCommitted, 1)) << "another has room";
  f.store->forget_history(f.store->revision());
  const auto kept = f.store->events("pods", f.store->revision() - 6, Horizon::kCommitted, 100);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 6);
  EXPECT_FALSE(f.store->events("pods", old, Horizon::kCommitted, 100));
}

TEST(Events, HistoryOfObjectsThatAreStillThereCostsNothing) {
  const StoreFixture f;
  const std::string large(256 * 1024, 'x');
  for (int i = 0; i < 20; ++i) f.put(pod_key("a" + std::to_string(i)), large);
  ASSERT_TRUE(f.store->flush());
  f.store->forget_history(f.store->revision());
  EXPECT_EQ(f.store->events("pods", 1, Horizon::kCommitted, 100)->size(), 20);
}

TEST(Events, HistoryStartsWhereTheStoreWasOpened) {
  StoreFixture f;
  f.put(pod_key("a"), "1");
  f.put(pod_key("a"), "2");
  f.store.reset();
  f.store = f.open(Store::Writer::kManual);
  EXPECT_EQ(f.store->revision(), 3);
  for (const char* resource : {"pods", "jobs"}) {
    SCOPED_TRACE(resource);
    EXPECT_TRUE(f.store->events(resource, 3, Horizon::kVisible, 10)->empty());
    EXPECT_EQ(f.store->events(resource, 2, Horizon::kVisible, 10).error().code, Code::kExpired);
  }
  f.put(pod_key("b"), "3");
  EXPECT_EQ(f.store->events("pods", 3, Horizon::kCommitted, 10)->size(), 1);
}

TEST(Entry, IsParsedOnceForAllWhoHoldItAtTheSameTime) {
  const Entry entry(pod_key("a"), 5, R"({"a":1})");
  std::vector<Object> values(8);
  {
    std::vector<std::jthread> threads;
    for (Object& value : values) threads.emplace_back([&] { value = entry.value(); });
  }
  for (const Object& value : values) EXPECT_EQ(value, values[0]);
  const std::weak_ptr<const json::value> watch = values[0];
  values.clear();
  EXPECT_TRUE(watch.expired()) << "nobody holds it, so nobody pays for it";
  EXPECT_EQ(json::serialize(*entry.value()), R"({"a":1})");
}

}  // namespace
}  // namespace skiff::store
