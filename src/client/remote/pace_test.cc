#include "client/remote/pace.h"

#include <gtest/gtest.h>

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

constexpr PaceOptions kTen{
    .start_per_s = 10, .least_per_s = 1, .most_per_s = 100, .burst = 3, .grow_per_s = 5};

// Sends as fast as the pace lets us for `time` and says how the server fares each time.
int send_for(Pace& pace, Duration& now, Duration time, const Fared& how) {
  int sent = 0;
  const Duration end = now + time;
  while (true) {
    const Duration wait = pace.reserve(now);
    if (now + wait > end) {
      now = end;
      return sent;
    }
    now += wait;
    pace.fared(now, how);
    ++sent;
  }
}

TEST(Pace, LetsABurstGoAndThenOneAtATime) {
  Pace pace(kTen);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pace.reserve(10s), 0s) << i;
  EXPECT_EQ(pace.reserve(10s), 100ms);
  EXPECT_EQ(pace.delay(10s), 200ms);
  EXPECT_EQ(pace.reserve(10s), 200ms);
}

TEST(Pace, AQuietTimeFillsTheBucketAndNotMore) {
  Pace pace(kTen);
  for (int i = 0; i < 20; ++i) pace.reserve(0s);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pace.reserve(1h), 0s) << i;
  EXPECT_GT(pace.reserve(1h), 0s);
}

TEST(Pace, GrowsWhileItIsTheLimitAndAllIsWell) {
  Pace pace(kTen);
  Duration now = 0s;
  send_for(pace, now, 20s, {.latency = 1ms});
  EXPECT_GT(pace.per_second(), 50);
  send_for(pace, now, 60s, {.latency = 1ms});
  EXPECT_EQ(pace.per_second(), kTen.most_per_s);
}

TEST(Pace, DoesNotGrowWhereNobodyWaitsForIt) {
  Pace pace(kTen);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(pace.reserve(i * 1s), 0s);
    pace.fared(i * 1s, {.latency = 1ms});
  }
  EXPECT_EQ(pace.per_second(), kTen.start_per_s);
}

TEST(Pace, HalvesOnceForAllComplaintsOfASecond) {
  Pace pace(kTen);
  for (int i = 0; i < 10; ++i) pace.fared(5s + i * 10ms, {.overloaded = true});
  EXPECT_EQ(pace.per_second(), 5);
  pace.fared(6s, {.overloaded = true});
  EXPECT_EQ(pace.per_second(), 2.5);
  for (int i = 7; i < 20; ++i) pace.fared(i * 1s, {.overloaded = true});
  EXPECT_EQ(pace.per_second(), kTen.least_per_s);
}

TEST(Pace, ComesBackWhenTheServerDoes) {
  Pace pace(kTen);
  Duration now = 0s;
  send_for(pace, now, 10s, {.overloaded = true});
  const double low = pace.per_second();
  EXPECT_LT(low, 2);
  send_for(pace, now, 30s, {.latency = 1ms});
  EXPECT_GT(pace.per_second(), kTen.start_per_s);
}

TEST(Pace, SendsNothingBeforeTheServerWantsIt) {
  Pace pace(kTen);
  pace.fared(1s, {.overloaded = true, .retry_after = 7s});
  EXPECT_EQ(pace.delay(1s), 7s);
  EXPECT_EQ(pace.reserve(3s), 5s);
  // A shorter wish does not shorten the longer one.
  pace.fared(3s, {.overloaded = true, .retry_after = 1s});
  EXPECT_GE(pace.delay(3s), 5s);
  EXPECT_EQ(pace.delay(60s), 0s);
  pace.fared(60s, {.overloaded = true, .retry_after = 24h});
  EXPECT_EQ(pace.delay(60s), 5min);
}

TEST(Pace, BacksOffWhenLatencyRises) {
  Pace pace(kTen);
  Duration now = 0s;
  send_for(pace, now, 5s, {.latency = 10ms});
  const double before = pace.per_second();
  send_for(pace, now, 5s, {.latency = 400ms});
  EXPECT_LT(pace.per_second(), before * 0.6);
}

TEST(Pace, AFastServerMayBeFiveTimesSlowerWithinNoise) {
  Pace pace(kTen);
  Duration now = 0s;
  send_for(pace, now, 5s, {.latency = 1ms});
  const double before = pace.per_second();
  send_for(pace, now, 5s, {.latency = 20ms});
  EXPECT_GE(pace.per_second(), before);
}

TEST(Pace, GetsUsedToAServerThatIsSlowForGood) {
  Pace pace(kTen);
  Duration now = 0s;
  send_for(pace, now, 5s, {.latency = 10ms});
  send_for(pace, now, 8s, {.latency = 200ms});
  const double low = pace.per_second();
  send_for(pace, now, 120s, {.latency = 200ms});
  EXPECT_GT(pace.per_second(), 2 * low);
}

}  // namespace
}  // namespace skiff::client
