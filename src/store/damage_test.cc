// Damaged files: a start finds every object as it was, or refuses with a sentence and leaves the
// files as they are. Never anything in between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "base/random.h"
#include "store/mark.h"
#include "store/sqlite_journal.h"
#include "store/store.h"
#include "store/test_directory.h"

namespace skiff::store {
namespace {

using State = std::map<std::string, std::string>;
using Files = std::map<std::string, std::string>;  // contents by name; absent: no such file

class DamageTest : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"objects.db", "objects.db-wal", "objects.db-mark"};

  // A store that was killed: its file, its log with the newest half of the commits, its mark.
  void SetUp() override {
    auto store = open("a boot");
    ASSERT_TRUE(store) << store.error().message;
    Random random(5);
    for (int i = 0; i < 120; ++i) {
      // The log goes into the file for the last time in the middle.
      if (i == 60) {
        store->reset();
        store = open("a boot");
        ASSERT_TRUE(store);
      }
      const std::string text(random.below(1 << (5 + random.below(9))), 'x');
      const json::value value = json::object{{"i", i}, {"text", text}};
      const Key key{"pods", "default",
                    i < 60 ? fmt::format("pod-{}", i) : fmt::format("a-{}", i % 20)};
      // The last commits are lazy: a power cut may take them.
      ASSERT_TRUE((*store)->commit({{.key = key, .value = value}},
                                   i < kSyncedCommits ? Sync::kSynced : Sync::kLazy));
      ASSERT_TRUE((*store)->flush());
      states[(*store)->revision()] = state_of(**store);
    }
    for (const char* name : kNames) whole[name] = *read(name);
    store->reset();
    ASSERT_GT(whole["objects.db-wal"].size(), 100'000);
  }

  Result<std::unique_ptr<Store>> open(const std::string& boot) {
    SKIFF_ASSIGN(auto journal, open_sqlite_journal(at("objects.db"), {.boot = boot}));
    return Store::open(std::move(journal), Store::Writer::kManual);
  }
  static State state_of(const Store& store) {
    State state;
    for (const EntryPtr& e : store.list("pods").entries) state[e->key().name] = e->text().str();
    return state;
  }
  std::string at(const std::string& name) const { return directory.path() + "/" + name; }
  std::optional<std::string> read(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }
  Files read_all() const {
    Files files;
    for (const char* name : kNames) {
      // SQLite makes an empty log where there is none.
      if (auto bytes = read(name); bytes && !bytes->empty()) files[name] = std::move(*bytes);
    }
    return files;
  }
  // Over the old file where there is one: damage does not make another file of it.
  void put(const Files& files) const {
    for (const char* name : kNames) {
      if (files.contains(name)) {
        std::ofstream(at(name), std::ios::binary | std::ios::trunc) << files.at(name);
      } else {
        std::filesystem::remove(at(name));
      }
    }
  }

  // Damages one file in some way; says how.
  static std::string damage(std::string& bytes, Random& random) {
    const std::size_t place = random.below(bytes.size());
    const std::size_t page = place / 4096 * 4096;
    switch (random.below(6)) {
      case 0:
        bytes.resize(place);
        return fmt::format("cut off at {}", place);
      case 1:
        bytes.replace(page, std::min<std::size_t>(4096, bytes.size() - page),
                      std::min<std::size_t>(4096, bytes.size() - page), '\0');
        return fmt::format("zeros at {}", page);
      case 2: {
        for (std::size_t i = place; i < std::min(place + 40, bytes.size()); ++i) {
          bytes[i] = static_cast<char>(random.next());
        }
        return fmt::format("noise at {}", place);
      }
      case 3: {
        const std::size_t other = random.below(bytes.size() / 4096 + 1) * 4096;
        bytes.replace(page, 4096, bytes.substr(std::min(other, bytes.size()), 4096));
        return fmt::format("page {} at {}", other, page);
      }
      default:
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << random.below(8)));
        return fmt::format("a bit at {}", place);
    }
  }

  // Opens damaged files. True: it opened with a state of `least` or later. False: it refused.
  bool opens_or_refuses(const std::string& boot, Revision least) {
    const Files before = read_all();
    const auto store = open(boot);
    if (!store) {
      const std::string& message = store.error().message;
      EXPECT_TRUE(message.contains(at("objects.db"))) << message;
      EXPECT_TRUE(message.contains("backup") || message.contains("--data")) << message;
      EXPECT_TRUE(message.contains("Nothing was changed")) << message;
      EXPECT_TRUE(read_all() == before) << "a refused file was changed: " << message;
      return false;
    }
    const State found = state_of(**store);
    bool known = false;
    for (const auto& [revision, state] : states) known |= revision >= least && state == found;
    EXPECT_TRUE(known) << "it opened with something else than what was written";
    return true;
  }

  void damage_many(const char* name, const std::string& boot, Revision least, int rounds) {
    int opened = 0, refused = 0;
    Random random(7);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
      Files files = whole;
      SCOPED_TRACE(fmt::format("round {}: {}", round, damage(files[name], random)));
      put(files);
      ++(opens_or_refuses(boot, least) ? opened : refused);
    }
    std::cout << fmt::format("{}: {} opened whole, {} refused\n", name, opened, refused);
    EXPECT_GT(refused, rounds / 4) << "damage goes unnoticed";
    put(whole);
    EXPECT_TRUE(opens_or_refuses("a boot", states.rbegin()->first)) << "without damage it opens";
  }

  static constexpr int kSyncedCommits = 105;
  TestDirectory directory{TestDirectory::in_memory()};
  std::map<Revision, State> states;  // after each commit
  Files whole;
};

TEST_F(DamageTest, InTheFileIsFound) {
  damage_many("objects.db", "a boot", states.rbegin()->first, 200);
}

TEST_F(DamageTest, InTheLogIsFound) {
  damage_many("objects.db-wal", "a boot", states.rbegin()->first, 150);
}

TEST_F(DamageTest, InTheLogAfterARestartOfTheMachineCostsLazyWritesAtMost) {
  const Revision synced = 1 + kSyncedCommits;
  damage_many("objects.db-wal", "another boot", synced, 100);
}

TEST_F(DamageTest, ThatHidesRowsFromSqliteIsFound) {
  // The number of rows that a page says it has, lowered by one: SQLite reads on without a word.
  put(whole);
  ASSERT_TRUE(open("a boot"));  // and closed: all is in the file
  const std::string file = *read("objects.db");
  int pages = 0;
  for (std::size_t page = 4096; page < file.size(); page += 4096) {
    const int rows = static_cast<unsigned char>(file[page + 4]);
    if (file[page] != '\x0a' || rows < 2) continue;  // a leaf of a table
    ++pages;
    SCOPED_TRACE(fmt::format("page at {}", page));
    Files files = {{"objects.db", file}, {"objects.db-mark", whole["objects.db-mark"]}};
    files["objects.db"][page + 4] = static_cast<char>(rows - 1);
    put(files);
    EXPECT_FALSE(opens_or_refuses("a boot", states.rbegin()->first));
  }
  EXPECT_GT(pages, 5);
}

TEST_F(DamageTest, ThatChangesWhatATableIsIsFound) {
  put(whole);
  ASSERT_TRUE(open("a boot"));
  std::string file = *read("objects.db");
  const std::size_t word = file.find("name TEXT NOT NULL");
  ASSERT_NE(word, std::string::npos);
  file.replace(word, 9, "name REAL");  // "12" would become 12.0 from now on
  put({{"objects.db", file}});
  const auto store = open("a boot");
  ASSERT_FALSE(store);
  EXPECT_TRUE(store.error().message.contains("tables are not as they were made"))
      << store.error().message;
}

TEST_F(DamageTest, OfTheMarkHarmsNothing) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    Files files = whole;
    SCOPED_TRACE(damage(files["objects.db-mark"], random));
    put(files);
    EXPECT_TRUE(opens_or_refuses("a boot", states.rbegin()->first));
  }
}

TEST_F(DamageTest, AMissingLogIsToldAndCanBeDoneWithout) {
  Files files = whole;
  files.erase("objects.db-wal");
  put(files);
  const auto refused = open("a boot");
  ASSERT_FALSE(refused);
  for (const char* word : {"ends at revision", "objects.db-wal is damaged or missing",
                           "Restore both files from a backup", "remove "}) {
    EXPECT_TRUE(refused.error().message.contains(word)) << refused.error().message;
  }
  std::filesystem::remove(at("objects.db-mark"));
  EXPECT_TRUE(open("a boot")) << "the remedy helps";
}

TEST_F(DamageTest, ABackupInThePlaceOfTheFileIsWelcome) {
  Files old = whole;
  old.erase("objects.db-wal");
  old.erase("objects.db-mark");
  std::ofstream(at("backup"), std::ios::binary) << whole["objects.db"];
  put(old);
  std::ofstream(at("objects.db-mark"), std::ios::binary) << whole["objects.db-mark"];
  std::filesystem::rename(at("backup"), at("objects.db"));
  const auto store = open("a boot");
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(state_of(**store), states[61]) << "of the last time the log was folded in";
}

TEST_F(DamageTest, AMarkKnowsLazyWritesUntilTheMachineRestarts) {
  std::ofstream(at("other")) << "a database";
  {
    Mark mark(at("other"), "one");
    EXPECT_EQ(mark.least(), 0);
    mark.set(7, Sync::kSynced);
    mark.set(9, Sync::kLazy);
  }
  EXPECT_EQ(Mark(at("other"), "one").least(), 9);
  EXPECT_EQ(Mark(at("other"), "two").least(), 7);
  {
    Mark mark(at("other"), "two");
    mark.set(11, Sync::kLazy);
  }
  EXPECT_EQ(Mark(at("other"), "two").least(), 11);
  EXPECT_EQ(Mark(at("other"), "three").least(), 7) << "what was synced before still holds";
}

}  // namespace
}  // namespace skiff::store
