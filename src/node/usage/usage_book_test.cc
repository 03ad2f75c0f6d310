#include "node/usage/usage_book.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kCpuSecond = 1'000'000'000;

Sample at(Duration elapsed, std::int64_t cpu_ns, std::int64_t memory = 1000) {
  return {.elapsed = elapsed, .cpu_ns = cpu_ns, .memory_bytes = memory};
}

TEST(UsageBook, OneReadingOfAnOldThingSaysNothing) {
  UsageBook book;
  book.note("a", at(seconds(100), 5 * kCpuSecond), seconds(3600));
  EXPECT_FALSE(book.rate("a"));
  EXPECT_FALSE(book.rate("never heard of"));
}

TEST(UsageBook, OneReadingOfAYoungThingIsMeasuredFromItsBeginning) {
  UsageBook book;
  book.note("a", at(seconds(100), 2 * kCpuSecond), seconds(4));
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->cpu_nano, kCpuSecond / 2);
  EXPECT_EQ(book.rate("a")->window, seconds(4));
}

TEST(UsageBook, AClockThatWasSetBackGivesNoBeginning) {
  UsageBook book;
  book.note("a", at(seconds(100), 2 * kCpuSecond), seconds(-4));
  EXPECT_FALSE(book.rate("a"));
}

TEST(UsageBook, TheRateIsOverTheLastWindowOnly) {
  UsageBook book;
  book.note("a", at(seconds(0), 0));
  book.note("a", at(seconds(10), 10 * kCpuSecond, 1));
  book.note("a", at(seconds(20), 10 * kCpuSecond, 2));
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->cpu_nano, 0) << "the busy time is a window ago";
  EXPECT_EQ(book.rate("a")->window, seconds(10));
  EXPECT_EQ(book.rate("a")->memory_bytes, 2);
}

TEST(UsageBook, ManyReadingsInARowStillGiveAWholeWindow) {
  UsageBook book;
  for (int second = 0; second <= 60; ++second) {
    book.note("a", at(seconds(second), second * kCpuSecond / 4));
  }
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->cpu_nano, kCpuSecond / 4);
  EXPECT_EQ(book.rate("a")->window, UsageBook::kWindow);
}

TEST(UsageBook, TwoReadingsInOneMomentSayNothing) {
  UsageBook book;
  book.note("a", at(seconds(1), 0));
  book.note("a", at(seconds(1) + milliseconds(400), kCpuSecond));
  EXPECT_FALSE(book.rate("a"));
  book.note("a", at(seconds(1) + milliseconds(500), kCpuSecond));
  EXPECT_TRUE(book.rate("a"));
}

TEST(UsageBook, ASumThatFallsIsNoUseAtAll) {
  UsageBook book;
  book.note("a", at(seconds(1), 9 * kCpuSecond));
  book.note("a", at(seconds(5), 3 * kCpuSecond));
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->cpu_nano, 0);
}

TEST(UsageBook, AReadingThatComesLateIsLeftOut) {
  UsageBook book;
  book.note("a", at(seconds(1), 0));
  book.note("a", at(seconds(5), 4 * kCpuSecond, 7));
  book.note("a", at(seconds(4), 3 * kCpuSecond, 6));
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->memory_bytes, 6) << "what was read last";
  EXPECT_EQ(book.rate("a")->cpu_nano, kCpuSecond);
}

TEST(UsageBook, MemoryIsWhatWasReadLast) {
  UsageBook book;
  book.note("a", {.elapsed = seconds(1)});
  book.note("a", {.elapsed = seconds(5)});
  EXPECT_FALSE(book.rate("a")) << "it was never read";
  book.note("a", at(seconds(6), 0, 42));
  book.note("a", {.elapsed = seconds(7)});
  ASSERT_TRUE(book.rate("a"));
  EXPECT_EQ(book.rate("a")->memory_bytes, 42);
}

TEST(UsageBook, WhatIsOverIsForgotten) {
  UsageBook book;
  for (const char* key : {"a", "b", "c"}) book.note(key, at(seconds(1), 0), seconds(1));
  book.keep_only({"b"});
  EXPECT_EQ(book.size(), 1u);
  EXPECT_TRUE(book.rate("b"));
  EXPECT_FALSE(book.rate("a"));
}

}  // namespace
}  // namespace skiff::node
