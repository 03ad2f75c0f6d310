#include "cli/train/heard_progress.h"

#include <gtest/gtest.h>

#include "cli/progress_text.h"

namespace skiff::cli {
namespace {

constexpr Time kStart = Time(std::chrono::seconds(1'800'000'000));

json::value job_with_progress(std::string_view progress) {
  return json::parse(R"({"status": {"progress": )" + std::string(progress) + "}}").value();
}

TEST(HeardProgress, TheBarMovesWithTheLinesThatScroll) {
  HeardProgress heard;
  for (int i = 1; i <= 10; ++i) {
    heard.hear("worker-0", "step " + std::to_string(i * 10) + "/200 loss=0.3",
               kStart + std::chrono::seconds(3 * i));
  }
  const json::value told =
      job_with_progress(R"({"step": 20, "totalSteps": 200, "percent": 10, "replica": "worker-0"})");
  const std::string bar =
      progress_bar(heard.brought_up_to_date(told), kStart + std::chrono::seconds(30), 80);
  EXPECT_EQ(bar, "[##########----------] step 100/200 (50 %), loss 0.3, about 30s left");
}

TEST(HeardProgress, WhatWasHeardStaysAsideWhereTheStatusKnowsBetter) {
  HeardProgress heard;
  heard.hear("worker-0", "step 50/200", kStart);
  heard.hear("worker-1", "step 90/200", kStart);
  heard.hear("worker-0", "nothing to see here", kStart);
  const struct {
    const char* why;
    const char* progress;
  } cases[] = {
      {"the status is further on",
       R"({"step": 60, "totalSteps": 200, "percent": 30, "replica": "worker-0"})"},
      {"the program counts something else in its file",
       R"({"step": 3, "totalSteps": 1000, "percent": 0, "replica": "worker-0"})"},
      {"another replica speaks for the job",
       R"({"step": 3, "totalSteps": 200, "percent": 1, "replica": "master-0"})"},
      {"nobody is known to speak", R"({"step": 3, "totalSteps": 200, "percent": 1})"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(heard.brought_up_to_date(job_with_progress(c.progress)),
              job_with_progress(c.progress))
        << c.why;
  }
  EXPECT_EQ(heard.brought_up_to_date(json::object()), json::value(json::object()));
}

TEST(HeardProgress, ABarCountsAsItWasDrawnLast) {
  HeardProgress heard;
  heard.hear("worker-0", "step 1/10\rstep 2/10\rstep 7/10\r", kStart);
  const json::value now = heard.brought_up_to_date(
      job_with_progress(R"({"step": 1, "totalSteps": 10, "percent": 10, "replica": "worker-0"})"));
  EXPECT_EQ(json::get_int(now, {"status", "progress", "step"}), 7);
  EXPECT_EQ(json::get_string(now, {"status", "progress", "replica"}), "worker-0");
}

}  // namespace
}  // namespace skiff::cli
