// The power goes, the process dies or a sync fails at random moments of real SQLite on a simulated
// disk: what was confirmed is there, transactions are whole, and no revision is given out twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "base/random.h"
#include "env/testing/sim_disk.h"
#include "store/journal.h"
#include "store/sqlite_journal.h"
#include "store/store.h"

namespace skiff::store {
namespace {

using env::testing::SimDisk;

using State = std::map<std::string, std::string>;  // the bytes of each object by its name

enum class End { kPowerCut, kCrash, kLostSync, kClean };

struct Counts {
  int power_cuts = 0;
  int lost_lazily = 0;  // power cuts that took lazy commits which others had seen
  int lost_syncs = 0;
  int mended = 0;  // starts after one of the above that found more than was promised
};

// One disk through several lives of a store. Each method says what is wrong, or nothing.
class World {
 public:
  World(std::uint64_t seed, bool lying_drive) : random_(seed), disk_(seed * 7919) {
    disk_.ignore_syncs(lying_drive);
    states_[1] = {};  // the revision of a new store
  }

  std::string run(int lives, Counts& counts) {
    End last = End::kClean;
    for (int life = 0; life < lives; ++life) {
      const End end = choose_end();
      const std::string wrong = live(end, last, counts);
      if (!wrong.empty()) return fmt::format("life {}: {}", life, wrong);
      last = lost_sync_ ? End::kLostSync : (end == End::kLostSync ? End::kCrash : end);
    }
    return {};
  }

 private:
  End choose_end() {
    constexpr End kEnds[] = {End::kPowerCut, End::kPowerCut, End::kPowerCut,
                             End::kCrash,    End::kLostSync, End::kClean};
    return kEnds[random_.below(std::size(kEnds))];
  }

  void plan(End end) {
    const std::uint64_t at = disk_.operations() + random_.below(random_.chance(30) ? 3 : 120);
    if (end == End::kLostSync) disk_.fail_from(at, SimDisk::Fault::kSync);
    if (end == End::kPowerCut || end == End::kCrash) disk_.fail_from(at, SimDisk::Fault::kDeath);
  }

  bool over() const { return disk_.dead() || lost_sync_; }

  std::string live(End end, End last, Counts& counts) {
    // A second disaster within the very start that mends a failed sync is one too many for SQLite.
    lost_sync_ = false;
    if (last != End::kLostSync) plan(end);
    if (std::string wrong = open(last, counts); !wrong.empty()) return wrong;
    if (last == End::kLostSync) plan(end);
    for (int step = 0; store_ && step < 40; ++step) {
      if (std::string wrong = commit_something(); !wrong.empty()) return wrong;
      if (!random_.chance(60)) continue;
      const Result<void> flushed = store_->flush();
      if (over()) break;
      if (!flushed) return "the disk refused: " + flushed.error().message;
      seen();
    }
    if (end == End::kClean) {
      store_.reset();
      return {};
    }
    if (end == End::kPowerCut) {
      ++counts.power_cuts;
      disk_.power_cut();
      least_ = kept_;
    } else {
      disk_.crash();
    }
    const bool lost_sync = lost_sync_;
    if (lost_sync) ++counts.lost_syncs;
    store_.reset();  // what it still tries has no effect and says nothing
    lost_sync_ = lost_sync;
    return {};
  }

  // What everybody may have seen by now, and what of it a power cut must leave.
  void seen() {
    told_ = least_ = store_->visible();
    if (synced_commit_) kept_ = told_;
    synced_commit_ = false;
  }

  std::string open(End last, Counts& counts) {
    if (last == End::kPowerCut) ++boot_;
    auto journal = open_sqlite_journal("/disk/objects.db",
                                       {.vfs = disk_.vfs(),
                                        .boot = fmt::format("boot {}", boot_),
                                        .checkpoint_pages = static_cast<int>(2 + random_.below(40)),
                                        .sync_folder =
                                            [this] {
                                              disk_.sync_folder();
                                              return Result<void>();
                                            },
                                        .sync_lost =
                                            [this](std::string_view) {
                                              if (disk_.dead())
                                                return;  // nobody is there to notice
                                              lost_sync_ = true;
                                              disk_.crash();
                                            }});
    // A sync that fails while the file is made or opened ends the start.
    if (!journal && disk_.struck()) lost_sync_ = !disk_.dead();
    if (!journal) return over() ? "" : "it does not open: " + journal.error().message;
    auto store = Store::open(std::move(*journal), Store::Writer::kManual);
    if (over()) return {};
    if (!store) return "it does not load: " + store.error().message;
    store_ = std::move(*store);
    return compare(counts);
  }

  std::string compare(Counts& counts) {
    const Revision now = store_->revision();
    // Revisions are skipped at each first start after a restart of the machine.
    Revision at = now;
    while (!states_.contains(at) && at > kLostRevisions) at -= kLostRevisions;
    if (!states_.contains(at)) return fmt::format("revision {} is the end of no commit", now);
    if (at < least_) return fmt::format("revision {} was promised, {} is there", least_, at);
    if (now < told_) return fmt::format("revision {} was seen; now it is {} again", told_, now);
    if (at < told_) ++counts.lost_lazily;
    if (at > least_) ++counts.mended;
    State found;
    for (const EntryPtr& entry : store_->list("pods").entries) {
      found[entry->key().name] = entry->text().str();
    }
    if (found != states_[at]) return fmt::format("the objects are not those of revision {}", at);
    states_.erase(states_.upper_bound(at), states_.end());
    states_[now] = found;
    synced_commit_ = false;
    // Whoever looks now sees all this, so it must not go away again.
    told_ = kept_ = least_ = now;
    return {};
  }

  std::string commit_something() {
    State state = states_.rbegin()->second;
    std::vector<Mutation> mutations;
    for (std::uint64_t left = 1 + random_.below(4); left > 0; --left) {
      const Key key{"pods", "default", fmt::format("pod-{}", random_.below(12))};
      if (state.contains(key.name) && random_.chance(25)) {
        mutations.push_back({.key = key});
        state.erase(key.name);
      } else {
        // From a part of a page to several pages.
        json::value value = {{"text", std::string(random_.below(1 << random_.below(15)), 'x')}};
        mutations.push_back({.key = key, .value = std::move(value)});
        state[key.name] = "";
      }
    }
    const Sync sync = random_.chance(40) ? Sync::kSynced : Sync::kLazy;
    const auto done = store_->commit(std::move(mutations), sync);
    if (!done) return "a commit is refused: " + done.error().message;
    if (done->revision <= states_.rbegin()->first) return "a revision is not higher than the last";
    synced_commit_ |= sync == Sync::kSynced;
    for (const EntryPtr& entry : done->entries) {
      if (state.contains(entry->key().name)) state[entry->key().name] = entry->text().str();
    }
    states_[done->revision] = std::move(state);
    return {};
  }

  Random random_;
  SimDisk disk_;
  int boot_ = 1;
  std::unique_ptr<Store> store_;
  std::map<Revision, State> states_;  // after each commit that may still turn out to be kept
  bool synced_commit_ = false;        // among those that wait for the disk
  bool lost_sync_ = false;
  Revision told_ = 1;   // seen by others
  Revision kept_ = 1;   // of this, what survives a power cut
  Revision least_ = 1;  // what the next start must find
};

TEST(PowerCut, NothingConfirmedIsLostAndTransactionsAreWhole) {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ASSERT_EQ(World(seed, false).run(8, counts), "") << "seed " << seed;
  }
  std::cout << fmt::format("{} power cuts, {} took lazy writes; {} failed syncs; {} found more\n",
                           counts.power_cuts, counts.lost_lazily, counts.lost_syncs, counts.mended);
  EXPECT_GT(counts.power_cuts, 600);
  EXPECT_GT(counts.lost_lazily, 100) << "the disk forgets too little to prove anything";
  EXPECT_GT(counts.lost_syncs, 100);
}

TEST(PowerCut, ADriveThatDoesNotSyncIsFoundOut) {
  // The same check without any sync, as with PRAGMA synchronous=OFF: it must fail.
  Counts counts;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    if (!World(seed, true).run(8, counts).empty()) ++found;
  }
  EXPECT_GT(found, 90);
}

TEST(LostSync, EndsTheProcessWithASentence) {
  SimDisk disk(1);
  const auto work = [&] {
    auto journal = open_sqlite_journal(
        "/disk/objects.db", {.vfs = disk.vfs(), .sync_folder = [] { return Result<void>(); }});
    auto store = Store::open(std::move(*journal), Store::Writer::kManual);
    disk.fail_from(disk.operations(), SimDisk::Fault::kSync);
    (void)(*store)->commit({{.key = {"pods", "default", "a"}, .value = json::object{}}},
                           Sync::kSynced);
    (void)(*store)->flush();
  };
  EXPECT_DEATH(work(), "could not keep what was written to /disk/objects.db.*start Skiff again");
}

}  // namespace
}  // namespace skiff::store
