#include "client/remote/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

// Far longer than a test takes.
constexpr auto kNever = 1h;

// In each test the workers come last: what their tasks use outlives them.

TEST(Workers, DoWhatTheyAreGivenSideBySide) {
  std::latch together(2), done(2);
  Workers workers({.threads = 2});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(workers.add([&] {
      together.arrive_and_wait();
      done.count_down();
    }));
  }
  done.wait();
}

TEST(Workers, DoWhatCanWaitOnceItIsQuiet) {
  std::latch let_go(1), done(2);
  std::atomic<bool> first_ended = false, too_early = false;
  std::latch begun(1);
  Workers workers({.threads = 2, .quiet = 1ms, .patience = kNever});
  ASSERT_TRUE(workers.add([&] {
    begun.count_down();
    let_go.wait();
    first_ended = true;
    done.count_down();
  }));
  begun.wait();
  ASSERT_TRUE(workers.add_patient([&] {
    too_early = !first_ended;
    done.count_down();
  }));
  // A free thread does not take it as long as the other is at work.
  std::this_thread::sleep_for(20ms);
  let_go.count_down();
  done.wait();
  EXPECT_FALSE(too_early);
}

TEST(Workers, DoWhatHasWaitedLongBesideTheRest) {
  std::latch let_go(1), begun(1), done(1);
  Workers workers({.threads = 2, .quiet = kNever, .patience = 5ms});
  ASSERT_TRUE(workers.add([&] {
    begun.count_down();
    let_go.wait();
  }));
  begun.wait();
  ASSERT_TRUE(workers.add_patient([&] { done.count_down(); }));
  done.wait();
  let_go.count_down();
}

TEST(Workers, ThatNeverRestStillDoWhatHasWaitedLong) {
  std::atomic<bool> stop = false;
  std::latch done(1);
  std::function<void()> again;
  Workers workers({.threads = 1, .quiet = kNever, .patience = 1ms});
  again = [&] {
    if (!stop) workers.add(again);
  };
  ASSERT_TRUE(workers.add(again));
  ASSERT_TRUE(workers.add_patient([&] { done.count_down(); }));
  done.wait();
  stop = true;
}

TEST(Workers, ThatAreLateDoTheRestWithoutWaitingAgain) {
  constexpr int kMany = 100;
  std::latch let_go(1), begun(1), done(kMany);
  int left = kMany;
  std::function<void()> again;
  Workers workers({.threads = 2, .quiet = kNever, .patience = 500ms});
  ASSERT_TRUE(workers.add([&] {
    begun.count_down();
    let_go.wait();
  }));
  begun.wait();
  // Each is given when the one before is done, as by a recorder with few under way.
  again = [&] {
    if (--left > 0) workers.add_patient(again);
    done.count_down();
  };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(workers.add_patient(again));
  done.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 40s)
      << "a hundred times the patience is fifty";
  let_go.count_down();
}

TEST(Workers, DoWhatCanWaitOneAtATimeAndInOrder) {
  constexpr int kMany = 50;
  std::atomic<int> at_once = 0, most = 0;
  std::vector<int> order;
  std::latch done(kMany);
  Workers workers({.threads = 4, .quiet = 0ms});
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(workers.add_patient([&, i] {
      most = std::max(most.load(), ++at_once);
      order.push_back(i);
      std::this_thread::yield();
      --at_once;
      done.count_down();
    }));
  }
  done.wait();
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Workers, RefuseMoreThanTheyCanHold) {
  std::latch let_go(1), begun(1);
  Workers workers({.threads = 1, .tasks_max = 1, .quiet = kNever, .patience = kNever});
  ASSERT_TRUE(workers.add([&] {
    begun.count_down();
    let_go.wait();
  }));
  begun.wait();
  EXPECT_TRUE(workers.add([] {}));
  EXPECT_FALSE(workers.add([] {}));
  EXPECT_TRUE(workers.add_patient([] {}));
  EXPECT_FALSE(workers.add_patient([] {}));
  let_go.count_down();
}

TEST(Workers, DropWhatHasNotBegunAtTheirEnd) {
  bool begun = false;
  {
    Workers workers({.threads = 1, .quiet = kNever, .patience = kNever});
    std::latch done(1);
    ASSERT_TRUE(workers.add([&] { done.count_down(); }));
    done.wait();
    ASSERT_TRUE(workers.add_patient([&] { begun = true; }));
  }
  EXPECT_FALSE(begun);
}

}  // namespace
}  // namespace skiff::client
