#include "features/jobsets/tally.h"

#include <gtest/gtest.h>

namespace skiff::jobsets {
namespace {

json::value jobset_with_condition(std::string_view condition = {}) {
  json::value out = {{"metadata", {{"name", "train"}, {"namespace", "team"}}}};
  if (condition.empty()) return out;
  json::set(out, {"status", "conditions"},
            json::array{json::object{{"type", json::string(condition)}, {"status", "True"}}});
  return out;
}

constexpr std::string_view kNone =
    "# HELP jobset_failed_total JobSets that have failed.\n"
    "# TYPE jobset_failed_total counter\n"
    "# HELP jobset_completed_total JobSets that have completed.\n"
    "# TYPE jobset_completed_total counter\n";

TEST(JobSetTally, counts_each_end_once) {
  for (const auto& [condition, line] :
       {std::pair("Failed", "jobset_failed_total{jobset_name=\"train\",namespace=\"team\"} 1\n"),
        {"Completed", "jobset_completed_total{jobset_name=\"train\",namespace=\"team\"} 1\n"}}) {
    Tally tally;
    const json::value before = jobset_with_condition();
    const json::value after = jobset_with_condition(condition);
    tally.changed(nullptr, &before);
    EXPECT_EQ(tally.text(), kNone);
    tally.changed(&before, &after);
    tally.changed(&after, &after);
    const std::string text = tally.text();
    EXPECT_NE(text.find(line), std::string::npos) << text;
    EXPECT_EQ(text.size(), kNone.size() + std::string_view(line).size()) << text;
  }
}

TEST(JobSetTally, leaves_out_what_had_ended_before_it_was_seen) {
  Tally tally;
  const json::value ended = jobset_with_condition("Failed");
  tally.changed(nullptr, &ended);
  EXPECT_EQ(tally.text(), kNone);
}

TEST(JobSetTally, forgets_what_is_gone) {
  Tally tally;
  const json::value before = jobset_with_condition();
  const json::value after = jobset_with_condition("Completed");
  tally.changed(&before, &after);
  tally.changed(&after, nullptr);
  EXPECT_EQ(tally.text(), kNone);
}

}  // namespace
}  // namespace skiff::jobsets
