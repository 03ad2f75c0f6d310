#include "node/usage/idle_rule.h"

#include <gtest/gtest.h>

#include <functional>

namespace skiff::node {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kCpu = 1'000'000'000;

IdleSample sample(int n, std::vector<int> busy, std::int64_t cpu = 2 * kCpu,
                  std::int64_t received = 0) {
  return {.elapsed = n * 10s,
          .busy_percent = std::move(busy),
          .cpu_nano = cpu,
          .cpu_limit_nano = 2 * kCpu,
          .received_per_s = received};
}

// What is said over this many samples, and at which it was said first.
struct Said {
  int times = 0, first = -1;
  std::string text = {};
};

Said over(IdleRule& rule, int count, const std::function<IdleSample(int)>& make) {
  Said out;
  for (int n = 0; n < count; ++n) {
    const auto told = rule.note("u/main/0", "worker-1", make(n));
    if (!told) continue;
    if (out.times++ == 0) out.first = n, out.text = *told;
  }
  return out;
}

TEST(IdleRule, SaysOnceThatTheInputIsTheBrake) {
  IdleRule rule;
  const Said said = over(rule, 100, [](int n) { return sample(n, {12}); });
  EXPECT_EQ(said.times, 1);
  EXPECT_EQ(said.first, 11);
  EXPECT_EQ(said.text,
            "GPU 0 of worker-1 was 12 % busy in the last 2 min while the CPU was full: the input "
            "pipeline is the brake; more loader processes or a cached data set would help");
}

TEST(IdleRule, SaysItAgainAfterHalfAnHour) {
  IdleRule rule;
  EXPECT_EQ(over(rule, 12 + 180 + 1, [](int n) { return sample(n, {12}); }).times, 2);
}

TEST(IdleRule, IsSilentWhereNothingIsWastedOrSomethingElseIsWaitedFor) {
  const struct {
    const char* sentence;
    std::function<IdleSample(int)> make;
  } cases[] = {
      {"a busy GPU", [](int n) { return sample(n, {90}); }},
      {"just busy enough", [](int n) { return sample(n, {IdleRule::kIdlePercent}); }},
      {"busy now and then", [](int n) { return sample(n, {n % 10 == 0 ? 80 : 5}); }},
      {"an idle CPU beside it", [](int n) { return sample(n, {5}, kCpu / 10); }},
      {"a CPU that is full now and then",
       [](int n) { return sample(n, {5}, n % 5 == 0 ? kCpu / 10 : 2 * kCpu); }},
      {"no limit is known",
       [](int n) {
         IdleSample s = sample(n, {5});
         s.cpu_limit_nano = 0;
         return s;
       }},
      {"no GPU at all", [](int n) { return sample(n, {}); }},
  };
  for (const auto& c : cases) {
    IdleRule rule;
    EXPECT_EQ(over(rule, 100, c.make).times, 0) << c.sentence;
  }
}

TEST(IdleRule, InputOverTheNetworkCountsToo) {
  IdleRule rule;
  const Said said = over(rule, 20, [](int n) { return sample(n, {5}, 0, IdleRule::kReadingPerS); });
  EXPECT_EQ(said.times, 1);
  EXPECT_TRUE(said.text.contains("while it read its input over the network")) << said.text;
}

TEST(IdleRule, NamesTheGpuThatIdles) {
  IdleRule rule;
  const Said said = over(rule, 20, [](int n) { return sample(n, {80, 10}); });
  EXPECT_TRUE(said.text.starts_with("GPU 1 of worker-1 was 10 % busy")) << said.text;
}

TEST(IdleRule, WhatIsOverIsForgotten) {
  IdleRule rule;
  over(rule, 11, [](int n) { return sample(n, {12}); });
  rule.keep_only({});
  EXPECT_FALSE(rule.note("u/main/0", "worker-1", sample(12, {12})));
}

}  // namespace
}  // namespace skiff::node
