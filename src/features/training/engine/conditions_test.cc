#include "features/training/engine/conditions.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

const Time kConditionsNoon = *parse_time("2026-11-15T12:00:00Z");
const Time kLater = *parse_time("2026-11-15T12:00:09Z");

struct Step {
  std::string_view type;
  bool status = true;
};

struct ConditionsCase {
  const char* sentence;
  std::vector<Step> steps;
  std::string expected;
};

class Conditions : public ::testing::TestWithParam<ConditionsCase> {};

TEST_P(Conditions, StandInOrder) {
  json::object status;
  for (const Step& step : GetParam().steps) {
    set_condition(status, {step.type, step.status, std::string(step.type), "."}, kConditionsNoon);
  }
  const json::value root = {{"status", status}};
  EXPECT_EQ(testing::condition_list(root), GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, Conditions,
    ::testing::Values(
        ConditionsCase{"the newest stands last", {{kCreated}, {kRunning}}, "Created Running"},
        ConditionsCase{"the same again changes nothing",
                       {{kCreated}, {kRunning}, {kCreated}},
                       "Created Running"},
        ConditionsCase{"Restarting takes the place of Running",
                       {{kCreated}, {kRunning}, {kRestarting}},
                       "Created Restarting"},
        ConditionsCase{"Running takes the place of Restarting",
                       {{kCreated}, {kRestarting}, {kRunning}},
                       "Created Running"},
        ConditionsCase{"Succeeded turns Running off where it stands",
                       {{kCreated}, {kRunning}, {kSucceeded}},
                       "Created !Running Succeeded"},
        ConditionsCase{"Failed turns Running off where it stands",
                       {{kCreated}, {kRunning}, {kFailed}},
                       "Created !Running Failed"},
        ConditionsCase{"a failed job takes no more conditions",
                       {{kCreated}, {kFailed}, {kRunning}, {kSucceeded}},
                       "Created Failed"},
        ConditionsCase{"a changed status moves the condition to the end",
                       {{kCreated}, {kSuspended}, {kRunning}, {kSuspended, false}},
                       "Created Running !Suspended"},
        ConditionsCase{"and Restarting, too",
                       {{kCreated}, {kRestarting}, {kFailed}},
                       "Created !Restarting Failed"}));

TEST(Condition, CarriesWhatKubectlShows) {
  json::object status;
  set_condition(status, {kRunning, true, "TFJobRunning", "It runs."}, kConditionsNoon);
  EXPECT_EQ(status["conditions"],
            (json::value(json::array{{{"type", "Running"},
                                      {"status", "True"},
                                      {"reason", "TFJobRunning"},
                                      {"message", "It runs."},
                                      {"lastUpdateTime", "2026-11-15T12:00:00Z"},
                                      {"lastTransitionTime", "2026-11-15T12:00:00Z"}}})));
}

TEST(Condition, KeepsItsMessageWhileStatusAndReasonStay) {
  json::object status;
  set_condition(status, {kFailed, false, "R", "first"}, kConditionsNoon);
  set_condition(status, {kFailed, false, "R", "second"}, kLater);
  EXPECT_EQ(json::get_string(status["conditions"].at(0), {"message"}), "first");
  EXPECT_EQ(json::get_string(status["conditions"].at(0), {"lastUpdateTime"}),
            "2026-11-15T12:00:00Z");
}

TEST(Condition, KeepsItsTransitionTimeWhileOnlyTheReasonChanges) {
  json::object status;
  set_condition(status, {kRunning, true, "One", "."}, kConditionsNoon);
  set_condition(status, {kRunning, true, "Two", "."}, kLater);
  ASSERT_EQ(status["conditions"].as_array().size(), 1u);
  const json::value& condition = status["conditions"].at(0);
  EXPECT_EQ(json::get_string(condition, {"lastTransitionTime"}), "2026-11-15T12:00:00Z");
  EXPECT_EQ(json::get_string(condition, {"lastUpdateTime"}), "2026-11-15T12:00:09Z");
}

TEST(Condition, TakesANewTransitionTimeWhenItsStatusChanges) {
  json::object status;
  set_condition(status, {kSuspended, true, "One", "."}, kConditionsNoon);
  set_condition(status, {kSuspended, false, "Two", "."}, kLater);
  EXPECT_EQ(json::get_string(status["conditions"].at(0), {"lastTransitionTime"}),
            "2026-11-15T12:00:09Z");
}

TEST(Condition, ReplacesAStatusThatHoldsNoList) {
  json::object status{{"conditions", "nonsense"}};
  set_condition(status, {kCreated, true, "R", "."}, kConditionsNoon);
  EXPECT_TRUE(has_condition(status, kCreated));
}

TEST(Finished, MeansSucceededOrFailedAndTrue) {
  json::object status;
  EXPECT_FALSE(finished(status));
  set_condition(status, {kRunning, true, "R", "."}, kConditionsNoon);
  EXPECT_FALSE(finished(status));
  json::object succeeded = status;
  set_condition(succeeded, {kSucceeded, true, "R", "."}, kConditionsNoon);
  EXPECT_TRUE(finished(succeeded));
  json::object failed = status;
  set_condition(failed, {kFailed, true, "R", "."}, kConditionsNoon);
  EXPECT_TRUE(finished(failed));
  json::object not_failed = status;
  set_condition(not_failed, {kFailed, false, "R", "."}, kConditionsNoon);
  EXPECT_FALSE(finished(not_failed));
}

TEST(ConditionReason, IsTheKindAndAWord) {
  const json::value root = testing::torchjob().role("Worker", 1).build();
  EXPECT_EQ(condition_reason(read_job(pytorch(), root), "Running"), "PyTorchJobRunning");
}

}  // namespace
}  // namespace skiff::training
