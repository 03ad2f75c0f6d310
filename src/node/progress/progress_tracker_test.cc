#include "node/progress/progress_tracker.h"

#include <gtest/gtest.h>

#include "node/progress/progress_scan.h"

namespace skiff::node {
namespace {

using namespace std::chrono_literals;

const Time kStart = *parse_time("2026-11-15T12:00:00Z");

ProgressTracker after(const std::vector<std::pair<Duration, std::string>>& lines) {
  ProgressTracker out;
  for (const auto& [at, line] : lines) {
    const auto read = parse_progress(line);
    EXPECT_TRUE(read) << line;
    if (read) out.take(*read, kStart + at);
  }
  return out;
}

TEST(ProgressTracker, TellsStepMetricsAndEnd) {
  const auto tracker = after({{0s, "step 10/100 loss=0.9"}, {10s, "step 20/100 loss=0.5"}});
  EXPECT_EQ(json::serialize(tracker.told()),
            R"({"step":20,"totalSteps":100,"percent":20,"metrics":{"loss":"0.5"},)"
            R"("firstStepTime":"2026-11-15T12:00:00Z","lastUpdateTime":"2026-11-15T12:00:10Z",)"
            R"("estimatedCompletionTime":"2026-11-15T12:01:30Z"})");
}

TEST(ProgressTracker, NothingIsToldOfNothing) {
  EXPECT_TRUE(ProgressTracker().empty());
  EXPECT_TRUE(ProgressTracker().told().empty());
  EXPECT_FALSE(ProgressTracker().estimated_end());
}

TEST(ProgressTracker, TheFractionOfEpochsAndSteps) {
  using Lines = std::vector<std::pair<Duration, std::string>>;
  const struct {
    const char* sentence;
    Lines lines;
    std::optional<double> fraction;
  } cases[] = {
      {"steps alone", {{0s, "step 25/100"}}, 0.25},
      {"no total, no fraction", {{0s, "step 25"}}, std::nullopt},
      {"a bar is that of its epoch", {{0s, "Epoch 3/4"}, {1s, "5/10 [=>..] - loss: 1"}}, 0.625},
      {"steps of an epoch", {{0s, "Epoch 1/4 step 5/10"}}, 0.125},
      {"steps that go on over epochs are of all",
       {{0s, "Epoch 1/4 step 10/40"}, {1s, "Epoch 2/4 step 20/40"}},
       0.5},
      {"steps that begin anew are not",
       {{0s, "Epoch 1/4 step 10/10"}, {1s, "Epoch 2/4 step 1/10"}},
       0.275},
      {"a new epoch has no steps yet",
       {{0s, "Epoch 1/4"}, {0s, "10/10 [==] - loss: 1"}, {1s, "Epoch 2/4"}},
       0.25},
      {"an epoch told with its metrics is done", {{0s, "Epoch 2/4 loss=1"}}, 0.5},
      {"one told without begins", {{0s, "Epoch 2/4"}}, 0.25},
      {"epochs from zero", {{0s, "epoch 0/4"}}, 0.0},
  };
  for (const auto& c : cases) {
    const auto fraction = after(c.lines).fraction();
    ASSERT_EQ(fraction.has_value(), c.fraction.has_value()) << c.sentence;
    if (fraction) EXPECT_NEAR(*fraction, *c.fraction, 1e-9) << c.sentence;
  }
}

TEST(ProgressTracker, AnEstimateFollowsThePresentPace) {
  ProgressTracker tracker;
  const auto step = [&](int n, Duration at) {
    tracker.take({.step = n, .total_steps = 1000}, kStart + at);
  };
  for (int n = 1; n <= 100; ++n) step(n, n * 10s);  // slow at first, 10 s each
  for (int n = 1; n <= 100; ++n) step(100 + n, 1000s + n * 1s);
  // 800 are left, and the last of them took a second or two each.
  const auto left = std::chrono::duration<double>(*tracker.estimated_end() - kStart - 1100s);
  EXPECT_GT(left.count(), 700);
  EXPECT_LT(left.count(), 1000);
}

TEST(ProgressTracker, WhoBeginsAnewIsMeasuredAnew) {
  const auto tracker = after({{0s, "step 10/100"}, {10s, "step 90/100"}, {100s, "step 50/100"}});
  EXPECT_FALSE(tracker.estimated_end());
  EXPECT_EQ(json::get_int(tracker.told(), {"percent"}), 50);
}

TEST(ProgressTracker, NoEstimateFromOneMomentOrFromAClockThatStoodStill) {
  EXPECT_FALSE(after({{0s, "step 10/100"}}).estimated_end());
  EXPECT_FALSE(after({{0s, "step 10/100"}, {0s, "step 20/100"}}).estimated_end());
  EXPECT_FALSE(after({{5s, "step 10/100"}, {0s, "step 20/100"}}).estimated_end());
}

TEST(ProgressTracker, AHundredPercentAreTheEnd) {
  EXPECT_EQ(json::get_int(after({{0s, "step 999/1000"}}).told(), {"percent"}), 99);
  EXPECT_EQ(json::get_int(after({{0s, "step 1000/1000"}}).told(), {"percent"}), 100);
}

std::string scanned(const std::vector<std::string>& pieces) {
  ProgressScan scan;
  for (const std::string& piece : pieces) scan.log_bytes(piece);
  const json::value told = scan.tracker().told();
  return std::to_string(json::get_int(told, {"step"}).value_or(-1));
}

TEST(ProgressScan, ReadsTheLinesOfALogHoweverTheyAreCut) {
  const std::string one = "2026-11-15T12:00:00.123456789Z stdout F step 3/9\n";
  EXPECT_EQ(scanned({one}), "3");
  for (std::size_t cut = 0; cut <= one.size(); ++cut) {
    EXPECT_EQ(scanned({one.substr(0, cut), one.substr(cut)}), "3") << cut;
  }
  EXPECT_EQ(scanned({one.substr(0, one.size() - 1)}), "-1") << "half a line is not read";
  EXPECT_EQ(scanned({"no time stdout F step 3/9\n"}), "-1");
  EXPECT_EQ(scanned({"\n\n  \nx y z\n" + one}), "3");
}

TEST(ProgressScan, ABarIsReadWhileItGrows) {
  const std::string head = "2026-11-15T12:00:00.1Z stderr ";
  EXPECT_EQ(scanned({head + "P \r 1%| | 1/9 [0\r 2%| | 2/9 [0\r\n"}), "2");
  EXPECT_EQ(scanned({head + "P \r 1%| | 1/9 [0\r 2%| | 2\n", head + "P /9 [0\r\n"}), "2");
  EXPECT_EQ(scanned({head + "F \r 1%| | 1/9 [0\r 2%| | 2/9 [0\n"}), "2");
  const std::string other = "2026-11-15T12:00:00.1Z stdout F step 7\n";
  EXPECT_EQ(scanned({head + "P st\n", other, head + "F ep 8\n"}), "8") << "streams are two";
}

TEST(ProgressScan, WhoWritesAFileIsBelievedMoreThanTheLog) {
  ProgressScan scan;
  scan.log_bytes("2026-11-15T12:00:00Z stdout F step 3/9 noise=1\n");
  scan.file_bytes("{\"step\": 5, \"total", kStart);
  EXPECT_EQ(json::get_int(scan.tracker().told(), {"step"}), 3);
  scan.file_bytes("_steps\": 50}\nno progress\n", kStart);
  scan.log_bytes("2026-11-15T12:00:01Z stdout F step 4/9\n");
  EXPECT_EQ(json::serialize(scan.tracker().told()),
            R"({"step":5,"totalSteps":50,"percent":10,"firstStepTime":"2026-11-15T12:00:00Z",)"
            R"("lastUpdateTime":"2026-11-15T12:00:00Z"})");
}

TEST(ProgressScan, HalfALineAfterAGapIsPassedOver) {
  ProgressScan scan;
  scan.skip_log(true);
  scan.log_bytes("Z stdout F step 3/9\n2026-11-15T12:00:00Z stdout F step 4/9\n");
  EXPECT_EQ(json::get_int(scan.tracker().told(), {"step"}), 4);
  scan.skip_file(true);
  scan.file_bytes("\"step\": 1}\n{\"step\": 6}\n", kStart);
  EXPECT_EQ(json::get_int(scan.tracker().told(), {"step"}), 6);
}

TEST(ProgressScan, ALineWithoutEndIsGivenUp) {
  ProgressScan scan;
  for (int i = 0; i < 100; ++i) scan.log_bytes(std::string(10'000, 'x'));
  scan.log_bytes("\n2026-11-15T12:00:00Z stdout F step 4/9\n");
  EXPECT_EQ(json::get_int(scan.tracker().told(), {"step"}), 4);
}

}  // namespace
}  // namespace skiff::node
