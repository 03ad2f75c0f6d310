// kill -9 at random moments: whatever was acknowledged is there, and transactions are whole.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include "base/check.h"
#include "base/random.h"
#include "store/store.h"
#include "store/test_directory.h"

namespace skiff::store {
namespace {

constexpr int kRounds = 30;
constexpr int kWriters = 3;

// What the child reports through the pipe: this writer's pair of objects is at this count, and
// somebody outside has been told so. Smaller than PIPE_BUF, so written whole or not at all.
struct Ack {
  std::uint32_t writer = 0;
  std::uint32_t count = 0;
  Revision revision = 0;
};

Key half(std::uint32_t writer, const char* which) {
  return {"pods", fmt::format("writer-{}", writer), which};
}

std::uint32_t count_of(const EntryPtr& entry) {
  if (entry == nullptr) return 0;
  return static_cast<std::uint32_t>(json::get_int(*entry->value(), {"count"}).value_or(0));
}

// Writes pairs for ever: both halves have the same count in one transaction.
void write_pairs(Store& store, std::uint32_t writer, Sync sync, int pipe) {
  for (std::uint32_t count = count_of(store.get(half(writer, "left"))) + 1;; ++count) {
    // Large enough that a transaction spans several pages, of changing size so that they move.
    const json::value value =
        json::object{{"count", count}, {"text", std::string(100 + count % 7 * 900, 'x')}};
    std::vector<Mutation> mutations;
    // Every fifth time the right half is removed and made anew, to have removals as well.
    if (count % 5 == 0 && count > 5) mutations.push_back({.key = half(writer, "right")});
    mutations.push_back({.key = half(writer, "left"), .value = value});
    mutations.push_back({.key = half(writer, "right"), .value = value});
    const auto done = store.commit(std::move(mutations), sync);
    SKIFF_CHECK(done.has_value(), done ? "" : done.error().message);
    store.when_visible(done->revision, [=, revision = done->revision] {
      const Ack ack{.writer = writer, .count = count, .revision = revision};
      SKIFF_CHECK(::write(pipe, &ack, sizeof ack) == sizeof ack, "the parent reads");
    });
    // A few commits on their way at any time, as from clients that wait for their answers.
    while (store.revision() - store.visible() > 40) std::this_thread::yield();
  }
}

// In a lazy round nothing is synced; in others lazy and synced commits share batches.
[[noreturn]] void child(const std::string& path, bool lazy, int pipe) {
  auto journal = open_sqlite_journal(path);
  SKIFF_CHECK(journal.has_value(), journal ? "" : journal.error().message);
  auto store = Store::open(std::move(*journal), Store::Writer::kThread);
  SKIFF_CHECK(store.has_value(), store ? "" : store.error().message);
  std::vector<std::jthread> writers;
  for (std::uint32_t w = 0; w < kWriters; ++w) {
    writers.emplace_back(
        [&, w] { write_pairs(**store, w, lazy || w == 0 ? Sync::kLazy : Sync::kSynced, pipe); });
  }
  writers.clear();
  _exit(1);
}

// Reads some acknowledgements, kills at a random one, and reads those still in the pipe.
// Gives the last of each writer.
std::map<std::uint32_t, Ack> run_and_kill(const std::string& path, Random& random) {
  const bool lazy = random.chance(33);
  int ends[2];
  SKIFF_CHECK(pipe(ends) == 0, "a pipe can be made");
  const pid_t pid = fork();
  SKIFF_CHECK(pid >= 0, "a process can be started");
  if (pid == 0) {
    close(ends[0]);
    child(path, lazy, ends[1]);
  }
  close(ends[1]);
  std::map<std::uint32_t, Ack> acknowledged;
  // Some rounds die while the store is still being made or opened.
  std::uint64_t left = random.chance(20) ? 0 : random.below(400);
  if (left == 0) usleep(static_cast<useconds_t>(random.below(5'000)));
  bool killed = false;
  while (true) {
    if (left == 0 && !killed) {
      kill(pid, SIGKILL);
      killed = true;
    }
    Ack ack;
    const ssize_t got = read(ends[0], &ack, sizeof ack);
    if (got == 0) break;
    SKIFF_CHECK(got == sizeof ack, "acknowledgements come whole");
    acknowledged[ack.writer] = ack;
    if (left > 0) --left;
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child failed by itself";
  return acknowledged;
}

TEST(Crash, EveryAcknowledgedWriteSurvivesAndTransactionsAreWhole) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/objects.db";
  const auto seed = static_cast<std::uint64_t>(getpid());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::uint64_t acknowledged = 0;
  Revision last = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    const auto acks = run_and_kill(path, random);
    auto journal = open_sqlite_journal(path);
    ASSERT_TRUE(journal) << journal.error().message;
    const auto store = Store::open(std::move(*journal), Store::Writer::kManual);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_GE((*store)->revision(), last);
    for (std::uint32_t w = 0; w < kWriters; ++w) {
      const std::uint32_t left = count_of((*store)->get(half(w, "left")));
      EXPECT_EQ(left, count_of((*store)->get(half(w, "right")))) << "half a transaction";
      if (!acks.contains(w)) continue;
      acknowledged += 1;
      EXPECT_GE(left, acks.at(w).count) << "an acknowledged write is gone";
      EXPECT_GE((*store)->revision(), acks.at(w).revision);
    }
    last = (*store)->revision();
  }
  EXPECT_GT(acknowledged, 10) << "the rounds were too short to prove anything";
}

}  // namespace
}  // namespace skiff::store
